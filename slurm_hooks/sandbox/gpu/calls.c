#define _GNU_SOURCE
#include "calls.h"

#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define POLL_MILLISECONDS 10

int initialized;

static void hang(const struct value *manner)
{
    if (value_equals(manner, "stubborn")) {
        sigset_t all;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, NULL);
    }
    for (;;)
        pause();
}

/* Waits as a driver does that polls its device: in many short sleeps. */
static void be_slow(unsigned long long milliseconds)
{
    const struct timespec pause_time = {.tv_nsec = POLL_MILLISECONDS * 1000000L};
    for (unsigned long long waited = 0; waited < milliseconds; waited += POLL_MILLISECONDS)
        nanosleep(&pause_time, NULL);
}

nvmlReturn_t fault_of(const struct state *state, const char *subject, const char *call)
{
    char name[128];
    struct value value;
    unsigned long long number;
    snprintf(name, sizeof name, "slow.%s", call);
    if (state_find(state, subject, name, &value) && value_numbers(&value, &number, 1))
        be_slow(number);
    snprintf(name, sizeof name, "hang.%s", call);
    if (state_find(state, subject, name, &value))
        hang(&value);
    snprintf(name, sizeof name, "error.%s", call);
    if (!state_find(state, subject, name, &value))
        return SUCCESS;
    return value_numbers(&value, &number, 1) ? (nvmlReturn_t)number : UNKNOWN;
}

static bool is_set(const struct state *state, const char *subject, const char *name)
{
    struct value value;
    return state_find(state, subject, name, &value) && value_equals(&value, "1");
}

nvmlReturn_t begin(struct state *state, const char *call)
{
    if (!state_read(state))
        return DRIVER_NOT_LOADED;
    nvmlReturn_t fault = fault_of(state, DRIVER, call);
    if (fault != SUCCESS)
        return fault;
    return is_set(state, DRIVER, "loaded") ? SUCCESS : DRIVER_NOT_LOADED;
}

nvmlReturn_t begin_initialized(struct state *state, const char *call)
{
    nvmlReturn_t result = begin(state, call);
    if (result == SUCCESS && __atomic_load_n(&initialized, __ATOMIC_SEQ_CST) <= 0)
        return UNINITIALIZED;
    return result;
}

nvmlReturn_t begin_gpu(struct state *state, const char *call, nvmlDevice_t device,
                       char subject[SUBJECT_SIZE])
{
    nvmlReturn_t result = begin_initialized(state, call);
    if (result != SUCCESS)
        return result;
    uintptr_t handle = (uintptr_t)device;
    if (handle < 1 || handle > MOST_GPUS)
        return INVALID_ARGUMENT;
    snprintf(subject, SUBJECT_SIZE, "gpu.%u", (unsigned int)(handle - 1));
    nvmlReturn_t fault = fault_of(state, subject, call);
    if (fault != SUCCESS)
        return fault;
    return is_set(state, subject, "lost") ? GPU_IS_LOST : SUCCESS;
}

nvmlReturn_t find_numbers(const struct state *state, const char *subject, const char *name,
                          unsigned long long *numbers, size_t wanted)
{
    struct value value;
    if (!state_find(state, subject, name, &value))
        return NOT_SUPPORTED;
    return value_numbers(&value, numbers, wanted) ? SUCCESS : UNKNOWN;
}

nvmlReturn_t copy_text(const struct state *state, const char *subject, const char *name,
                       char *text, unsigned int size)
{
    struct value value;
    if (text == NULL)
        return INVALID_ARGUMENT;
    if (!state_find(state, subject, name, &value))
        return NOT_SUPPORTED;
    if (value.length >= size)
        return INSUFFICIENT_SIZE;
    memcpy(text, value.start, value.length);
    text[value.length] = '\0';
    return SUCCESS;
}

nvmlReturn_t gpu_numbers(const char *call, nvmlDevice_t device, const char *name,
                         unsigned long long *numbers, size_t wanted)
{
    struct state state;
    char subject[SUBJECT_SIZE];
    nvmlReturn_t result = begin_gpu(&state, call, device, subject);
    if (result == SUCCESS)
        result = find_numbers(&state, subject, name, numbers, wanted);
    state_free(&state);
    return result;
}

nvmlReturn_t gpu_unsigned(const char *call, nvmlDevice_t device, const char *name,
                          unsigned int *number)
{
    unsigned long long found;
    if (number == NULL)
        return INVALID_ARGUMENT;
    nvmlReturn_t result = gpu_numbers(call, device, name, &found, 1);
    if (result == SUCCESS)
        *number = (unsigned int)found;
    return result;
}

nvmlReturn_t gpu_text(const char *call, nvmlDevice_t device, const char *name, char *text,
                      unsigned int size)
{
    struct state state;
    char subject[SUBJECT_SIZE];
    nvmlReturn_t result = begin_gpu(&state, call, device, subject);
    if (result == SUCCESS)
        result = copy_text(&state, subject, name, text, size);
    state_free(&state);
    return result;
}

nvmlReturn_t gpu_numbered(const char *call, nvmlDevice_t device, const char *name,
                          unsigned int position, unsigned long long *number)
{
    char key[64];
    snprintf(key, sizeof key, "%s.%u", name, position);
    return gpu_numbers(call, device, key, number, 1);
}

unsigned int version_number(unsigned int version)
{
    return version >> 24;
}
