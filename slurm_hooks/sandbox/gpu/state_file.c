#define _GNU_SOURCE
#include "state_file.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STATE_NAME "libnvidia-ml.state"
#define LONGEST_FILE (1024 * 1024)

/* The path of the state file, or of its next version, beside the file this code was loaded from. */
static bool state_path(char *path, size_t size, const char *suffix)
{
    Dl_info info;
    if (dladdr((void *)state_read, &info) == 0 || info.dli_fname == NULL)
        return false;
    const char *slash = strrchr(info.dli_fname, '/');
    int directory = slash == NULL ? 0 : (int)(slash - info.dli_fname + 1);
    int length = snprintf(path, size, "%.*s%s%s", directory, info.dli_fname, STATE_NAME, suffix);
    return length > 0 && (size_t)length < size;
}

bool state_read(struct state *state)
{
    char path[PATH_MAX];
    state->text = NULL;
    state->length = 0;
    if (!state_path(path, sizeof path, ""))
        return false;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return false;
    state->text = malloc(LONGEST_FILE);
    ssize_t got = state->text == NULL ? -1 : 1;
    while (got > 0 && state->length < LONGEST_FILE) {
        got = read(file, state->text + state->length, LONGEST_FILE - state->length);
        state->length += got > 0 ? (size_t)got : 0;
    }
    close(file);
    if (got < 0)
        state_free(state);
    return got >= 0;
}

void state_free(struct state *state)
{
    free(state->text);
    state->text = NULL;
    state->length = 0;
}

static bool line_is_of(const char *line, size_t length, const char *key, size_t key_length)
{
    return length > key_length && line[key_length] == '=' && memcmp(line, key, key_length) == 0;
}

bool state_find(const struct state *state, const char *subject, const char *name,
                struct value *value)
{
    char key[256];
    int key_length = snprintf(key, sizeof key, "%s.%s", subject, name);
    if (key_length < 0 || (size_t)key_length >= sizeof key)
        return false;
    const char *end = state->text + state->length;
    for (const char *line = state->text; line < end;) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        size_t length = (size_t)((stop == NULL ? end : stop) - line);
        if (line_is_of(line, length, key, (size_t)key_length)) {
            value->start = line + key_length + 1;
            value->length = length - (size_t)key_length - 1;
            return true;
        }
        line += length + 1;
    }
    return false;
}

static bool write_all(int file, const char *text, size_t length)
{
    while (length > 0) {
        ssize_t written = write(file, text, length);
        if (written <= 0)
            return false;
        text += written;
        length -= (size_t)written;
    }
    return true;
}

bool state_replace(const struct state *state, const struct value *old, const char *replacement)
{
    char path[PATH_MAX], next[PATH_MAX];
    if (!state_path(path, sizeof path, "") || !state_path(next, sizeof next, ".next"))
        return false;
    int file = open(next, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (file < 0)
        return false;
    const char *rest = old->start + old->length;
    bool is_whole = write_all(file, state->text, (size_t)(old->start - state->text)) &&
                    write_all(file, replacement, strlen(replacement)) &&
                    write_all(file, rest, (size_t)(state->text + state->length - rest));
    close(file);
    return is_whole && rename(next, path) == 0;
}

bool value_numbers(const struct value *value, unsigned long long *numbers, size_t wanted)
{
    char text[512];
    if (value->length >= sizeof text)
        return false;
    memcpy(text, value->start, value->length);
    text[value->length] = '\0';
    const char *next = text;
    for (size_t position = 0; position < wanted; position++) {
        char *stop;
        numbers[position] = strtoull(next, &stop, 10);
        char separator = position + 1 < wanted ? ',' : '\0';
        if (stop == next || *stop != separator)
            return false;
        next = stop + 1;
    }
    return next == text + value->length + 1;
}

size_t value_items(const struct value *value)
{
    size_t items = value->length > 0 ? 1 : 0;
    for (size_t position = 0; position < value->length; position++)
        items += value->start[position] == ',';
    return items;
}

bool value_equals(const struct value *value, const char *text)
{
    return value->length == strlen(text) && memcmp(value->start, text, value->length) == 0;
}
