/* A pretended NVIDIA driver library: the NVML calls that health checks use, on machines without a
 * GPU. It is loaded in the place of the real one by the real binding, and answers from a state
 * file (state_file.h). Structures and numbers are NVML's own.
 *
 * Here: the library as a whole, what a GPU is, and field values.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calls.h"

#define INIT_FLAG_NO_ATTACH 2u

/* Beside its own faults it has those of `attach`, which is what flag 2 leaves out. */
EXPORTED nvmlReturn_t nvmlInitWithFlags(unsigned int flags)
{
    struct state state;
    nvmlReturn_t result = begin(&state, __func__);
    if (result == SUCCESS && (flags & INIT_FLAG_NO_ATTACH) == 0)
        result = fault_of(&state, DRIVER, "attach");
    state_free(&state);
    if (result == SUCCESS)
        __atomic_add_fetch(&initialized, 1, __ATOMIC_SEQ_CST);
    return result;
}

EXPORTED nvmlReturn_t nvmlInit_v2(void)
{
    return nvmlInitWithFlags(0);
}

EXPORTED nvmlReturn_t nvmlShutdown(void)
{
    struct state state;
    nvmlReturn_t result = state_read(&state) ? fault_of(&state, DRIVER, __func__) : SUCCESS;
    state_free(&state);
    if (result == SUCCESS && __atomic_sub_fetch(&initialized, 1, __ATOMIC_SEQ_CST) < 0) {
        __atomic_add_fetch(&initialized, 1, __ATOMIC_SEQ_CST);
        return UNINITIALIZED;
    }
    return result;
}

EXPORTED const char *nvmlErrorString(nvmlReturn_t result)
{
    static _Thread_local char text[32];
    snprintf(text, sizeof text, "NVML error %d", (int)result);
    return result == SUCCESS ? "Success" : text;
}

/* driver.version */
EXPORTED nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned int length)
{
    struct state state;
    nvmlReturn_t result = begin_initialized(&state, __func__);
    if (result == SUCCESS)
        result = copy_text(&state, DRIVER, "version", version, length);
    state_free(&state);
    return result;
}

static nvmlReturn_t count_gpus(const struct state *state, unsigned int *count)
{
    unsigned long long number;
    nvmlReturn_t result = find_numbers(state, DRIVER, "count", &number, 1);
    if (result == SUCCESS)
        *count = (unsigned int)number;
    return result;
}

/* driver.count */
EXPORTED nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *count)
{
    struct state state;
    if (count == NULL)
        return INVALID_ARGUMENT;
    nvmlReturn_t result = begin_initialized(&state, __func__);
    if (result == SUCCESS)
        result = count_gpus(&state, count);
    state_free(&state);
    return result;
}

EXPORTED nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device)
{
    struct state state;
    char subject[SUBJECT_SIZE];
    unsigned int count = 0;
    if (device == NULL || index >= MOST_GPUS)
        return INVALID_ARGUMENT;
    nvmlDevice_t handle = (nvmlDevice_t)(uintptr_t)(index + 1);
    nvmlReturn_t result = begin_gpu(&state, __func__, handle, subject);
    if (result == SUCCESS)
        result = count_gpus(&state, &count);
    if (result == SUCCESS && index >= count)
        result = INVALID_ARGUMENT;
    state_free(&state);
    if (result == SUCCESS)
        *device = handle;
    return result;
}

/* gpu.N.minor */
EXPORTED nvmlReturn_t nvmlDeviceGetMinorNumber(nvmlDevice_t device, unsigned int *minor)
{
    return gpu_unsigned(__func__, device, "minor", minor);
}

/* gpu.N.uuid */
EXPORTED nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned int length)
{
    return gpu_text(__func__, device, "uuid", uuid, length);
}

/* gpu.N.serial */
EXPORTED nvmlReturn_t nvmlDeviceGetSerial(nvmlDevice_t device, char *serial, unsigned int length)
{
    return gpu_text(__func__, device, "serial", serial, length);
}

typedef struct {
    char busIdLegacy[16];
    unsigned int domain, bus, device;
    unsigned int pciDeviceId, pciSubSystemId;
    char busId[32];
} nvmlPciInfo_t;

/* gpu.N.pci=DOMAIN,BUS,DEVICE as decimal numbers */
EXPORTED nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *pci)
{
    unsigned long long place[3];
    if (pci == NULL)
        return INVALID_ARGUMENT;
    nvmlReturn_t result = gpu_numbers(__func__, device, "pci", place, 3);
    if (result != SUCCESS)
        return result;
    memset(pci, 0, sizeof *pci);
    pci->domain = (unsigned int)place[0];
    pci->bus = (unsigned int)place[1];
    pci->device = (unsigned int)place[2];
    snprintf(pci->busIdLegacy, sizeof pci->busIdLegacy, "%04X:%02X:%02X.0", pci->domain & 0xffff,
             pci->bus & 0xff, pci->device & 0xff);
    snprintf(pci->busId, sizeof pci->busId, "%08X:%02X:%02X.0", pci->domain, pci->bus,
             pci->device);
    return SUCCESS;
}

typedef union {
    double dVal;
    unsigned int uiVal;
    unsigned long ulVal;
    unsigned long long ullVal;
    long long sllVal;
    int siVal;
    unsigned short usVal;
} nvmlValue_t;

typedef struct {
    unsigned int fieldId, scopeId;
    long long timestamp, latencyUsec;
    int valueType, nvmlReturn;
    nvmlValue_t value;
} nvmlFieldValue_t;

static const char *const TYPES[] = {"double",    "uint", "ulong", "ulonglong",
                                    "slonglong", "sint", "ushort"};
#define TYPE_COUNT ((int)(sizeof TYPES / sizeof *TYPES))

/* Numbers are kept in two's complement, so that each member of the union reads its own part. */
static nvmlReturn_t parse_field(const struct value *value, nvmlFieldValue_t *field)
{
    char text[128], *colon, *stop;
    if (value->length >= sizeof text)
        return UNKNOWN;
    memcpy(text, value->start, value->length);
    text[value->length] = '\0';
    if ((colon = strchr(text, ':')) == NULL)
        return UNKNOWN;
    *colon = '\0';
    if (strcmp(text, "error") == 0)
        return (nvmlReturn_t)strtol(colon + 1, NULL, 10);
    for (field->valueType = 0; field->valueType < TYPE_COUNT; field->valueType++)
        if (strcmp(text, TYPES[field->valueType]) == 0)
            break;
    if (field->valueType == 0)
        field->value.dVal = strtod(colon + 1, &stop);
    else
        field->value.ullVal = strtoull(colon + 1, &stop, 10);
    return stop == colon + 1 || *stop != '\0' ? UNKNOWN : SUCCESS;
}

static nvmlReturn_t answer_field(const struct state *state, const char *subject,
                                 nvmlFieldValue_t *field)
{
    char name[64];
    struct value value;
    snprintf(name, sizeof name, "field.%u.%u", field->fieldId, field->scopeId);
    bool is_found = state_find(state, subject, name, &value);
    if (!is_found && field->scopeId == 0) {
        snprintf(name, sizeof name, "field.%u", field->fieldId);
        is_found = state_find(state, subject, name, &value);
    }
    return is_found ? parse_field(&value, field) : NOT_SUPPORTED;
}

/* gpu.N.field.ID and gpu.N.field.ID.SCOPE, each TYPE:VALUE or error:NUMBER */
EXPORTED nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t device, int count,
                                               nvmlFieldValue_t *fields)
{
    struct state state;
    char subject[SUBJECT_SIZE];
    if (fields == NULL || count <= 0)
        return INVALID_ARGUMENT;
    nvmlReturn_t result = begin_gpu(&state, __func__, device, subject);
    for (int position = 0; result == SUCCESS && position < count; position++)
        fields[position].nvmlReturn = answer_field(&state, subject, &fields[position]);
    state_free(&state);
    return result;
}
