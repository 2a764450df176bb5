/* NVML calls about a GPU's memory and its errors. */
#include <stddef.h>

#include "calls.h"

/* gpu.N.remapped_rows=CORRECTED,UNCORRECTED,PENDING,FAILED */
EXPORTED nvmlReturn_t nvmlDeviceGetRemappedRows(nvmlDevice_t device, unsigned int *corrected,
                                                unsigned int *uncorrected,
                                                unsigned int *is_pending,
                                                unsigned int *has_failed)
{
    unsigned long long rows[4];
    if (!corrected || !uncorrected || !is_pending || !has_failed)
        return INVALID_ARGUMENT;
    nvmlReturn_t result = gpu_numbers(__func__, device, "remapped_rows", rows, 4);
    if (result != SUCCESS)
        return result;
    *corrected = (unsigned int)rows[0];
    *uncorrected = (unsigned int)rows[1];
    *is_pending = (unsigned int)rows[2];
    *has_failed = (unsigned int)rows[3];
    return SUCCESS;
}

/* gpu.N.ecc.0=CORRECTED and gpu.N.ecc.1=UNCORRECTED since the driver was loaded */
EXPORTED nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t device, int type, int counter,
                                                  unsigned long long *count)
{
    if (count == NULL || type < 0 || type > 1 || counter < 0 || counter > 1)
        return INVALID_ARGUMENT;
    const char *name = counter == 0 ? "ecc" : "ecc.aggregate";
    return gpu_numbered(__func__, device, name, (unsigned int)type, count);
}

typedef struct {
    unsigned int version;
    unsigned long long aggregateUncParity, aggregateUncSecDed, aggregateCor;
    unsigned long long volatileUncParity, volatileUncSecDed, volatileCor;
    unsigned long long aggregateUncBuckets[5];
    unsigned int bThresholdExceeded;
} nvmlEccSramErrorStatus_t;

/* gpu.N.sram=PARITY,SEC_DED,CORRECTED,OVER_THRESHOLD */
EXPORTED nvmlReturn_t nvmlDeviceGetSramEccErrorStatus(nvmlDevice_t device,
                                                      nvmlEccSramErrorStatus_t *status)
{
    unsigned long long errors[4];
    if (status == NULL)
        return INVALID_ARGUMENT;
    if (version_number(status->version) != 1)
        return ARGUMENT_VERSION_MISMATCH;
    nvmlReturn_t result = gpu_numbers(__func__, device, "sram", errors, 4);
    if (result != SUCCESS)
        return result;
    status->volatileUncParity = status->aggregateUncParity = errors[0];
    status->volatileUncSecDed = status->aggregateUncSecDed = errors[1];
    status->volatileCor = status->aggregateCor = errors[2];
    status->bThresholdExceeded = (unsigned int)errors[3];
    return SUCCESS;
}

static nvmlReturn_t retired_pages(const char *call, nvmlDevice_t device, int cause,
                                  unsigned int *count, unsigned long long *addresses,
                                  unsigned long long *times)
{
    unsigned long long pages;
    if (count == NULL || cause < 0 || cause > 1)
        return INVALID_ARGUMENT;
    nvmlReturn_t result =
        gpu_numbered(call, device, "retired_pages", (unsigned int)cause, &pages);
    if (result != SUCCESS)
        return result;
    unsigned int room = *count;
    *count = (unsigned int)pages;
    if (addresses == NULL || room < pages)
        return pages > 0 ? INSUFFICIENT_SIZE : SUCCESS;
    for (unsigned int page = 0; page < pages; page++) {
        addresses[page] = (page + 1) * 0x10000ull;
        if (times != NULL)
            times[page] = 0;
    }
    return SUCCESS;
}

/* gpu.N.retired_pages.0 for many single-bit errors, gpu.N.retired_pages.1 for a double-bit one */
EXPORTED nvmlReturn_t nvmlDeviceGetRetiredPages(nvmlDevice_t device, int cause,
                                                unsigned int *count,
                                                unsigned long long *addresses)
{
    return retired_pages(__func__, device, cause, count, addresses, NULL);
}

EXPORTED nvmlReturn_t nvmlDeviceGetRetiredPages_v2(nvmlDevice_t device, int cause,
                                                   unsigned int *count,
                                                   unsigned long long *addresses,
                                                   unsigned long long *times)
{
    return retired_pages(__func__, device, cause, count, addresses, times);
}

/* gpu.N.retired_pages.pending */
EXPORTED nvmlReturn_t nvmlDeviceGetRetiredPagesPendingStatus(nvmlDevice_t device,
                                                             unsigned int *is_pending)
{
    return gpu_unsigned(__func__, device, "retired_pages.pending", is_pending);
}

typedef struct {
    unsigned long long total, free, used;
} nvmlMemory_t;

typedef struct {
    unsigned int version;
    unsigned long long total, reserved, free, used;
} nvmlMemory_v2_t;

/* gpu.N.memory=TOTAL,RESERVED,USED in bytes; the old form counts what is reserved as used */
EXPORTED nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory)
{
    unsigned long long bytes[3];
    if (memory == NULL)
        return INVALID_ARGUMENT;
    nvmlReturn_t result = gpu_numbers(__func__, device, "memory", bytes, 3);
    if (result != SUCCESS)
        return result;
    memory->total = bytes[0];
    memory->used = bytes[1] + bytes[2];
    memory->free = memory->total - memory->used;
    return SUCCESS;
}

EXPORTED nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory)
{
    unsigned long long bytes[3];
    if (memory == NULL)
        return INVALID_ARGUMENT;
    if (version_number(memory->version) != 2)
        return ARGUMENT_VERSION_MISMATCH;
    nvmlReturn_t result = gpu_numbers(__func__, device, "memory", bytes, 3);
    if (result != SUCCESS)
        return result;
    memory->total = bytes[0];
    memory->reserved = bytes[1];
    memory->used = bytes[2];
    memory->free = bytes[0] - bytes[1] - bytes[2];
    return SUCCESS;
}
