/* NVML calls about a GPU's links to others and to its host, and about its clocks. */
#include <stddef.h>

#include "calls.h"

/* gpu.N.nvlink.LINK=1 for an active one; a link that is absent does not exist */
EXPORTED nvmlReturn_t nvmlDeviceGetNvLinkState(nvmlDevice_t device, unsigned int link,
                                               unsigned int *is_active)
{
    unsigned long long found;
    if (is_active == NULL)
        return INVALID_ARGUMENT;
    nvmlReturn_t result = gpu_numbered(__func__, device, "nvlink", link, &found);
    if (result == SUCCESS)
        *is_active = (unsigned int)found;
    return result;
}

typedef struct {
    unsigned char clusterUuid[16];
    int status;
    unsigned int cliqueId;
    unsigned char state;
} nvmlGpuFabricInfo_t;

typedef struct {
    unsigned int version;
    unsigned char clusterUuid[16];
    int status;
    unsigned int cliqueId;
    unsigned char state;
    unsigned int healthMask;
    unsigned char healthSummary;
} nvmlGpuFabricInfo_v3_t;

/* gpu.N.fabric=STATE,STATUS,HEALTH_MASK,HEALTH_SUMMARY; gpu.N.fabric_version=2 refuses newer ones */
EXPORTED nvmlReturn_t nvmlDeviceGetGpuFabricInfoV(nvmlDevice_t device,
                                                  nvmlGpuFabricInfo_v3_t *fabric)
{
    unsigned long long values[4], newest;
    if (fabric == NULL)
        return INVALID_ARGUMENT;
    unsigned int version = version_number(fabric->version);
    nvmlReturn_t result = gpu_numbers(__func__, device, "fabric", values, 4);
    if (result != SUCCESS)
        return result;
    if (gpu_numbers(__func__, device, "fabric_version", &newest, 1) != SUCCESS)
        newest = 3;
    if (version < 2 || version > newest)
        return ARGUMENT_VERSION_MISMATCH;
    fabric->state = (unsigned char)values[0];
    fabric->status = (int)values[1];
    fabric->healthMask = (unsigned int)values[2];
    if (version >= 3)
        fabric->healthSummary = (unsigned char)values[3];
    return SUCCESS;
}

EXPORTED nvmlReturn_t nvmlDeviceGetGpuFabricInfo(nvmlDevice_t device, nvmlGpuFabricInfo_t *fabric)
{
    unsigned long long values[4];
    if (fabric == NULL)
        return INVALID_ARGUMENT;
    nvmlReturn_t result = gpu_numbers(__func__, device, "fabric", values, 4);
    if (result != SUCCESS)
        return result;
    fabric->state = (unsigned char)values[0];
    fabric->status = (int)values[1];
    return SUCCESS;
}

/* gpu.N.pcie.width, .max_width, .generation, .max_generation, .replays */
EXPORTED nvmlReturn_t nvmlDeviceGetCurrPcieLinkWidth(nvmlDevice_t device, unsigned int *width)
{
    return gpu_unsigned(__func__, device, "pcie.width", width);
}

EXPORTED nvmlReturn_t nvmlDeviceGetMaxPcieLinkWidth(nvmlDevice_t device, unsigned int *width)
{
    return gpu_unsigned(__func__, device, "pcie.max_width", width);
}

EXPORTED nvmlReturn_t nvmlDeviceGetCurrPcieLinkGeneration(nvmlDevice_t device,
                                                          unsigned int *generation)
{
    return gpu_unsigned(__func__, device, "pcie.generation", generation);
}

EXPORTED nvmlReturn_t nvmlDeviceGetMaxPcieLinkGeneration(nvmlDevice_t device,
                                                         unsigned int *generation)
{
    return gpu_unsigned(__func__, device, "pcie.max_generation", generation);
}

EXPORTED nvmlReturn_t nvmlDeviceGetPcieReplayCounter(nvmlDevice_t device, unsigned int *replays)
{
    return gpu_unsigned(__func__, device, "pcie.replays", replays);
}

typedef struct {
    unsigned long long referenceTime, violationTime;
} nvmlViolationTime_t;

/* gpu.N.violation.POLICY=NANOSECONDS */
EXPORTED nvmlReturn_t nvmlDeviceGetViolationStatus(nvmlDevice_t device, unsigned int policy,
                                                   nvmlViolationTime_t *time)
{
    if (time == NULL)
        return INVALID_ARGUMENT;
    time->referenceTime = 0;
    return gpu_numbered(__func__, device, "violation", policy, &time->violationTime);
}
