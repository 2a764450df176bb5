/* NVML calls about who uses a GPU and how it is set up. */
#include <stdint.h>
#include <stdlib.h>

#include "calls.h"

typedef struct {
    unsigned int pid;
    unsigned long long usedGpuMemory;
    unsigned int gpuInstanceId, computeInstanceId;
} nvmlProcessInfo_t;

static nvmlReturn_t list_processes(const char *call, nvmlDevice_t device, const char *name,
                                   unsigned int *count, nvmlProcessInfo_t *processes)
{
    struct state state;
    struct value value = {"", 0};
    char subject[SUBJECT_SIZE];
    if (count == NULL)
        return INVALID_ARGUMENT;
    nvmlReturn_t result = begin_gpu(&state, call, device, subject);
    if (result == SUCCESS && !state_find(&state, subject, name, &value))
        result = NOT_SUPPORTED;
    size_t items = value_items(&value);
    unsigned long long *pids = calloc(items + 1, sizeof *pids);
    if (pids == NULL || (result == SUCCESS && items > 0 && !value_numbers(&value, pids, items)))
        result = UNKNOWN;
    if (result == SUCCESS && items > 0 && (processes == NULL || *count < items))
        result = INSUFFICIENT_SIZE;
    for (size_t item = 0; result == SUCCESS && item < items; item++)
        processes[item] = (nvmlProcessInfo_t){.pid = (unsigned int)pids[item],
                                              .gpuInstanceId = UINT32_MAX,
                                              .computeInstanceId = UINT32_MAX};
    if (result == SUCCESS || result == INSUFFICIENT_SIZE)
        *count = (unsigned int)items;
    free(pids);
    state_free(&state);
    return result;
}

/* gpu.N.processes.compute, .mps and .graphics: lists of process ids with commas */
EXPORTED nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device,
                                                              unsigned int *count,
                                                              nvmlProcessInfo_t *processes)
{
    return list_processes(__func__, device, "processes.compute", count, processes);
}

EXPORTED nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses_v3(nvmlDevice_t device,
                                                                 unsigned int *count,
                                                                 nvmlProcessInfo_t *processes)
{
    return list_processes(__func__, device, "processes.mps", count, processes);
}

EXPORTED nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v3(nvmlDevice_t device,
                                                               unsigned int *count,
                                                               nvmlProcessInfo_t *processes)
{
    return list_processes(__func__, device, "processes.graphics", count, processes);
}

/* gpu.N.persistence */
EXPORTED nvmlReturn_t nvmlDeviceGetPersistenceMode(nvmlDevice_t device, unsigned int *is_on)
{
    return gpu_unsigned(__func__, device, "persistence", is_on);
}

/* Writes gpu.N.persistence: the only value that a call changes. */
EXPORTED nvmlReturn_t nvmlDeviceSetPersistenceMode(nvmlDevice_t device, unsigned int is_on)
{
    struct state state;
    struct value value;
    char subject[SUBJECT_SIZE];
    nvmlReturn_t result = begin_gpu(&state, __func__, device, subject);
    if (result == SUCCESS && is_on > 1)
        result = INVALID_ARGUMENT;
    if (result == SUCCESS && !state_find(&state, subject, "persistence", &value))
        result = NOT_SUPPORTED;
    if (result == SUCCESS && !state_replace(&state, &value, is_on ? "1" : "0"))
        result = NO_PERMISSION;
    state_free(&state);
    return result;
}

/* gpu.N.inforom=1 for a good one, 0 for a corrupted one */
EXPORTED nvmlReturn_t nvmlDeviceValidateInforom(nvmlDevice_t device)
{
    unsigned int is_good;
    nvmlReturn_t result = gpu_unsigned(__func__, device, "inforom", &is_good);
    return result == SUCCESS && !is_good ? CORRUPTED_INFOROM : result;
}

/* gpu.N.multi_instance_mode */
EXPORTED nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned int *current,
                                           unsigned int *pending)
{
    nvmlReturn_t result = gpu_unsigned(__func__, device, "multi_instance_mode", current);
    if (result == SUCCESS && pending != NULL)
        *pending = *current;
    return result;
}
