/* Records what a power failure would keep: how much of each file was synced, and which renames and removals were
   followed by a sync of their directory. power.py reads it. */

#define _GNU_SOURCE
#include "control.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static int64_t graves;

static int is_tracked(const char *path) {
    return control != NULL && control->tracked[0] != 0 && is_below(control->tracked, path);
}

/* One line, in one write: several processes may append to the file. */
__attribute__((format(printf, 1, 2))) static void append(const char *format, ...) {
    char line[3 * PATH_MAX];
    int saved = errno;
    va_list values;
    va_start(values, format);
    int size = vsnprintf(line, sizeof line, format, values);
    va_end(values);
    /* System calls, because this library replaces the functions. */
    int fd = syscall(SYS_openat, AT_FDCWD, control->journal, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (fd >= 0) {
        syscall(SYS_write, fd, line, (size_t)size);
        syscall(SYS_close, fd);
    }
    errno = saved;
}

static int is_tracked_fd(int fd, struct stat *state) {
    char path[PATH_MAX];
    if (control == NULL || control->tracked[0] == 0)
        return 0;
    path_of_fd(fd, path);
    return is_tracked(path) && fstat(fd, state) == 0;
}

void record_sync(int fd) {
    struct stat state;
    if (!is_tracked_fd(fd, &state))
        return;
    if (S_ISDIR(state.st_mode))
        append("directory\t%lu\n", (unsigned long)state.st_ino);
    else
        append("sync\t%lu\t%ld\n", (unsigned long)state.st_ino, (long)state.st_size);
}

void record_truncation(int fd, off_t size) {
    struct stat state;
    if (is_tracked_fd(fd, &state))
        append("truncate\t%lu\t%ld\n", (unsigned long)state.st_ino, (long)size);
}

void record_creation(int fd) {
    struct stat state;
    if (is_tracked_fd(fd, &state))
        append("create\t%lu\n", (unsigned long)state.st_ino);
}

static unsigned long directory_of(const char *path) {
    char copy[PATH_MAX];
    struct stat state;
    snprintf(copy, sizeof copy, "%s", path);
    return stat(dirname(copy), &state) == 0 ? (unsigned long)state.st_ino : 0;
}

/* A second name for a file that is about to be removed; empty if there is none to keep. */
void keep_file(const char *path, char *grave) {
    grave[0] = 0;
    if (!is_tracked(path))
        return;
    int saved = errno;
    snprintf(grave, PATH_MAX, "%s/%d-%ld", control->graveyard, (int)getpid(),
             (long)__atomic_add_fetch(&graves, 1, __ATOMIC_RELAXED));
    if (syscall(SYS_linkat, AT_FDCWD, path, AT_FDCWD, grave, 0) != 0)
        grave[0] = 0;
    errno = saved;
}

/* The removal has failed. */
void forget_file(const char *grave) {
    int saved = errno;
    if (grave[0] != 0)
        syscall(SYS_unlinkat, AT_FDCWD, grave, 0);
    errno = saved;
}

void record_rename(const char *source, const char *target, const char *grave) {
    if (is_tracked(source) || is_tracked(target))
        append("rename\t%lu\t%s\t%s\t%s\n", directory_of(target), source, target, grave);
}

/* Without a grave it was a directory. */
void record_removal(const char *path, const char *grave) {
    if (is_tracked(path))
        append("remove\t%lu\t%s\t%s\n", directory_of(path), path, grave);
}
