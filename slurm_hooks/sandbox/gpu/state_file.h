/* The state file of a pretended driver: what NVML calls answer from.
 *
 * It lies beside the library, as libnvidia-ml.state, so that each node root holds its own pair. It
 * is read anew at every call: whoever replaces it (by rename) changes what the next call says.
 *
 * Lines of KEY=VALUE; lines that begin with # and lines without = say nothing; of equal keys the
 * first counts. Keys begin with the one they are about: `driver.` or `gpu.N.`, N an NVML index.
 *
 *   driver.loaded=1                whether the kernel driver is loaded
 *   driver.version=570.133.20
 *   driver.count=8                 what NVML counts; GPUs beyond it have no handle
 *   gpu.0.lost=1                   every call about the GPU fails with 15
 *   gpu.0.minor=0                  and so on: libnvidia-ml.c says for each call what it reads
 *   gpu.0.field.230=uint:0         a field value: its type and the value, or error:NUMBER
 *   gpu.0.field.214.3=ulonglong:7  the same for scope 3
 *   SUBJECT.error.CALL=NUMBER      the call fails; below `driver.` for every GPU
 *   SUBJECT.hang.CALL=killable     the call never returns; `stubborn` ignores SIGTERM as well
 *   SUBJECT.slow.CALL=NUMBER       it takes that many milliseconds before anything else happens
 *
 * A value that is absent is not supported by the GPU. One that is no number is an unknown error.
 */
#ifndef STATE_FILE_H
#define STATE_FILE_H

#include <stdbool.h>
#include <stddef.h>

struct state {
    char *text;
    size_t length;
};

struct value {
    const char *start;
    size_t length;
};

/* Read the whole file; false where there is none or it cannot be read. Free it afterwards. */
bool state_read(struct state *state);
void state_free(struct state *state);

/* The value of `SUBJECT.NAME`; false where the file does not have it. */
bool state_find(const struct state *state, const char *subject, const char *name,
                struct value *value);

/* Write the file anew with another value for `SUBJECT.NAME`; false where that is not possible. */
bool state_replace(const struct state *state, const struct value *old, const char *replacement);

/* `wanted` whole numbers with commas between them; false for anything else. */
bool value_numbers(const struct value *value, unsigned long long *numbers, size_t wanted);

/* How many items a list with commas has: 0 for an empty one. */
size_t value_items(const struct value *value);

bool value_equals(const struct value *value, const char *text);

#endif
