/* How every NVML call of the pretended driver begins, and what calls have in common. */
#ifndef CALLS_H
#define CALLS_H

#include "state_file.h"

#define EXPORTED __attribute__((visibility("default")))
#define DRIVER "driver"
#define SUBJECT_SIZE 24
#define MOST_GPUS 64

typedef enum {
    SUCCESS = 0,
    UNINITIALIZED = 1,
    INVALID_ARGUMENT = 2,
    NOT_SUPPORTED = 3,
    NO_PERMISSION = 4,
    INSUFFICIENT_SIZE = 7,
    DRIVER_NOT_LOADED = 9,
    CORRUPTED_INFOROM = 14,
    GPU_IS_LOST = 15,
    ARGUMENT_VERSION_MISMATCH = 25,
    UNKNOWN = 999,
} nvmlReturn_t;

/* A handle is the NVML index plus one, so that none is a null pointer. Nobody looks behind it. */
typedef struct nvmlDevice *nvmlDevice_t;

/* How often the library was started and not yet ended. Change it atomically. */
extern int initialized;

/* Never returns if the call hangs; else the error that the state asks for. */
nvmlReturn_t fault_of(const struct state *state, const char *subject, const char *call);

/* Read the state for a call that is about no GPU. Free it whatever comes back. */
nvmlReturn_t begin(struct state *state, const char *call);
nvmlReturn_t begin_initialized(struct state *state, const char *call);

/* The same for a call about a GPU; writes the subject of its keys. */
nvmlReturn_t begin_gpu(struct state *state, const char *call, nvmlDevice_t device,
                       char subject[SUBJECT_SIZE]);

nvmlReturn_t find_numbers(const struct state *state, const char *subject, const char *name,
                          unsigned long long *numbers, size_t wanted);
nvmlReturn_t copy_text(const struct state *state, const char *subject, const char *name,
                       char *text, unsigned int size);

/* Whole calls about a GPU that answer with the value of one key. */
nvmlReturn_t gpu_numbers(const char *call, nvmlDevice_t device, const char *name,
                         unsigned long long *numbers, size_t wanted);
nvmlReturn_t gpu_unsigned(const char *call, nvmlDevice_t device, const char *name,
                          unsigned int *number);
nvmlReturn_t gpu_text(const char *call, nvmlDevice_t device, const char *name, char *text,
                      unsigned int size);

/* The value of `NAME.POSITION`. */
nvmlReturn_t gpu_numbered(const char *call, nvmlDevice_t device, const char *name,
                          unsigned int position, unsigned long long *number);

/* Of the version that a structure names, the number; the other bytes are its size. */
unsigned int version_number(unsigned int version);

#endif
