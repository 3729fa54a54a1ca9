/* A disk that fails on request: full, broken, read-only or slow, for files below a directory. */

#define _GNU_SOURCE
#include "control.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

/* ---- paths */

int is_below(const char *directory, const char *path) {
    size_t size = strlen(directory);
    return strncmp(directory, path, size) == 0 && (path[size] == '/' || path[size] == 0);
}

/* Empty if there is none; paths have PATH_MAX bytes. */
void path_of_fd(int fd, char *path) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t size = readlink(link, path, PATH_MAX - 1);
    path[size < 0 ? 0 : size] = 0;
}

/* The absolute path, with links of its directory followed. */
void path_at(int directory_fd, const char *name, char *path) {
    char whole[2 * PATH_MAX], directory[PATH_MAX];
    if (name[0] == '/') {
        snprintf(whole, sizeof whole, "%s", name);
    } else {
        if (directory_fd != AT_FDCWD)
            path_of_fd(directory_fd, directory);
        else if (getcwd(directory, sizeof directory) == NULL)
            directory[0] = 0;
        snprintf(whole, sizeof whole, "%s/%s", directory, name);
    }
    size_t end = strlen(whole);
    while (end > 1 && whole[end - 1] == '/')
        whole[--end] = 0;
    char *last = strrchr(whole, '/');
    *last = 0;
    if (realpath(last == whole ? "/" : whole, directory) == NULL)
        snprintf(directory, sizeof directory, "%.*s", PATH_MAX - 1, whole);
    snprintf(path, PATH_MAX, "%.*s/%.*s", PATH_MAX / 2, strcmp(directory, "/") == 0 ? "" : directory,
             PATH_MAX / 2 - 2, last + 1);
}

/* ---- rules */

static int64_t take(int64_t *left, int64_t wanted) {
    int64_t value = __atomic_load_n(left, __ATOMIC_RELAXED);
    int64_t taken;
    do {
        taken = value < wanted ? value : wanted;
    } while (taken > 0 && !__atomic_compare_exchange_n(left, &value, value - taken, 0, __ATOMIC_RELAXED,
                                                       __ATOMIC_RELAXED));
    return taken;
}

/* Whether this rule makes the call fail. A write may be cut short instead: then *size is less. */
static int fails(struct rule *rule, uint32_t operation, size_t *size) {
    if (rule->skip > 0 && take(&rule->skip, 1) == 1)
        return 0;
    if (rule->room_bytes >= 0 && operation == OP_WRITE) {
        int64_t room = take(&rule->room_bytes, (int64_t)*size);
        if (room == (int64_t)*size)
            return 0;
        if (room > 0)
            *size = (size_t)room;
        __atomic_add_fetch(&rule->hits, 1, __ATOMIC_RELAXED);
        return room == 0;
    }
    if (rule->room_bytes > 0)
        return 0;
    if (rule->times == 0 || (rule->times > 0 && take(&rule->times, 1) == 0))
        return 0;
    __atomic_add_fetch(&rule->hits, 1, __ATOMIC_RELAXED);
    if (rule->delay_ns > 0) {
        struct timespec delay = {rule->delay_ns / 1000000000, rule->delay_ns % 1000000000};
        nanosleep(&delay, NULL);
    }
    return rule->error != 0;
}

/* The error with which a call on this path fails, or 0. */
static int fault_at(uint32_t operation, const char *path, size_t *size) {
    for (int index = 0; index < RULES_MAX; index++) {
        struct rule *rule = &control->rules[index];
        if (rule->is_active && (rule->operations & operation) && is_below(rule->below, path)
            && fails(rule, operation, size))
            return rule->error;
    }
    return 0;
}

static int has_rules(void) {
    return control != NULL && control->has_rules;
}

static int fault_of_fd(uint32_t operation, int fd, size_t *size) {
    char path[PATH_MAX];
    int saved = errno, error;
    if (!has_rules())
        return 0;
    path_of_fd(fd, path);
    error = fault_at(operation, path, size);
    errno = error != 0 ? error : saved;
    return error;
}

static int fault_of_path(uint32_t operation, const char *path) {
    size_t size = 0;
    int error = has_rules() ? fault_at(operation, path, &size) : 0;
    if (error != 0)
        errno = error;
    return error;
}

#define FAIL_FD(operation, fd) \
    do { \
        size_t none = 0; \
        if (fault_of_fd(operation, fd, &none)) \
            return -1; \
    } while (0)

/* ---- writing */

ssize_t write(int fd, const void *data, size_t size) {
    NEXT(write);
    return fault_of_fd(OP_WRITE, fd, &size) ? -1 : next(fd, data, size);
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t position) {
    NEXT(pwrite);
    return fault_of_fd(OP_WRITE, fd, &size) ? -1 : next(fd, data, size, position);
}

ssize_t pwrite64(int fd, const void *data, size_t size, off64_t position) {
    return pwrite(fd, data, size, position);
}

/* A vector that is cut short is written up to the end of a part. */
static int parts_within(const struct iovec *parts, int count, size_t size) {
    int whole = 0;
    while (whole < count && parts[whole].iov_len <= size)
        size -= parts[whole++].iov_len;
    return whole;
}

static size_t total_of(const struct iovec *parts, int count) {
    size_t total = 0;
    for (int index = 0; index < count; index++)
        total += parts[index].iov_len;
    return total;
}

ssize_t pwritev2(int fd, const struct iovec *parts, int count, off_t position, int flags) {
    NEXT(pwritev2);
    size_t total = total_of(parts, count), size = total;
    if (fault_of_fd(OP_WRITE, fd, &size))
        return -1;
    if (size == total)
        return next(fd, parts, count, position, flags);
    int whole = parts_within(parts, count, size);
    struct iovec first = {parts[0].iov_base, size};
    return whole == 0 ? next(fd, &first, 1, position, flags) : next(fd, parts, whole, position, flags);
}

ssize_t pwritev64v2(int fd, const struct iovec *parts, int count, off64_t position, int flags) {
    return pwritev2(fd, parts, count, position, flags);
}

ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t position) {
    return pwritev2(fd, parts, count, position, 0);
}

ssize_t pwritev64(int fd, const struct iovec *parts, int count, off64_t position) {
    return pwritev2(fd, parts, count, position, 0);
}

ssize_t writev(int fd, const struct iovec *parts, int count) {
    NEXT(writev);
    size_t total = total_of(parts, count), size = total;
    if (fault_of_fd(OP_WRITE, fd, &size))
        return -1;
    if (size == total)
        return next(fd, parts, count);
    int whole = parts_within(parts, count, size);
    struct iovec first = {parts[0].iov_base, size};
    return whole == 0 ? next(fd, &first, 1) : next(fd, parts, whole);
}

int fallocate(int fd, int mode, off_t position, off_t size) {
    NEXT(fallocate);
    size_t wanted = (size_t)size;
    if (fault_of_fd(OP_WRITE, fd, &wanted))
        return -1;
    if (wanted < (size_t)size) {
        errno = ENOSPC;
        return -1;
    }
    return next(fd, mode, position, size);
}

int fallocate64(int fd, int mode, off64_t position, off64_t size) {
    return fallocate(fd, mode, position, size);
}

/* Returns the error instead of setting errno. */
int posix_fallocate(int fd, off_t position, off_t size) {
    NEXT(posix_fallocate);
    size_t wanted = (size_t)size;
    int error = fault_of_fd(OP_WRITE, fd, &wanted);
    if (error != 0)
        return error;
    return wanted < (size_t)size ? ENOSPC : next(fd, position, size);
}

int posix_fallocate64(int fd, off64_t position, off64_t size) {
    return posix_fallocate(fd, position, size);
}

int ftruncate(int fd, off_t size) {
    NEXT(ftruncate);
    FAIL_FD(OP_TRUNCATE, fd);
    int result = next(fd, size);
    if (result == 0)
        record_truncation(fd, size);
    return result;
}

int ftruncate64(int fd, off64_t size) {
    return ftruncate(fd, size);
}

int truncate(const char *name, off_t size) {
    int fd = syscall(SYS_openat, AT_FDCWD, name, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    int result = ftruncate(fd, size);
    close(fd);
    return result;
}

int truncate64(const char *name, off64_t size) {
    return truncate(name, size);
}

/* ---- syncing */

#define SYNC(name) \
    int name(int fd) { \
        NEXT(name); \
        FAIL_FD(OP_SYNC, fd); \
        int result = next(fd); \
        if (result == 0) \
            record_sync(fd); \
        return result; \
    }

SYNC(fsync)
SYNC(fdatasync)

/* ---- opening, creating, renaming, removing */

static int opened(int directory_fd, const char *name, int flags, mode_t mode) {
    NEXT(openat);
    if (control == NULL || !(flags & (O_CREAT | O_WRONLY | O_RDWR | O_TRUNC)))
        return next(directory_fd, name, flags, mode);
    char path[PATH_MAX];
    path_at(directory_fd, name, path);
    int is_new = (flags & O_CREAT) && faccessat(directory_fd, name, F_OK, AT_SYMLINK_NOFOLLOW) != 0;
    if (fault_of_path(is_new ? OP_CREATE | OP_OPEN_TO_WRITE : OP_OPEN_TO_WRITE, path))
        return -1;
    int fd = next(directory_fd, name, flags, mode);
    if (fd >= 0 && is_new)
        record_creation(fd);
    else if (fd >= 0 && (flags & O_TRUNC))
        record_truncation(fd, 0);
    return fd;
}

#define MODE_OF(flags, last) \
    mode_t mode = 0; \
    if ((flags) & (O_CREAT | O_TMPFILE)) { \
        va_list values; \
        va_start(values, last); \
        mode = va_arg(values, mode_t); \
        va_end(values); \
    }

#define OPEN(name) \
    int name(const char *path, int flags, ...) { \
        MODE_OF(flags, flags) \
        return opened(AT_FDCWD, path, flags, mode); \
    }

OPEN(open)
OPEN(open64)

/* What programs call that were compiled with checks of buffer sizes. */
int __open_2(const char *path, int flags) {
    return opened(AT_FDCWD, path, flags, 0);
}

int __open64_2(const char *path, int flags) {
    return opened(AT_FDCWD, path, flags, 0);
}

int openat(int directory_fd, const char *path, int flags, ...) {
    MODE_OF(flags, flags)
    return opened(directory_fd, path, flags, mode);
}

int openat64(int directory_fd, const char *path, int flags, ...) {
    MODE_OF(flags, flags)
    return opened(directory_fd, path, flags, mode);
}

int mkdirat(int directory_fd, const char *name, mode_t mode) {
    NEXT(mkdirat);
    char path[PATH_MAX];
    if (has_rules()) {
        path_at(directory_fd, name, path);
        if (fault_of_path(OP_CREATE, path))
            return -1;
    }
    return next(directory_fd, name, mode);
}

int mkdir(const char *name, mode_t mode) {
    return mkdirat(AT_FDCWD, name, mode);
}

int linkat(int source_fd, const char *source, int target_fd, const char *target, int flags) {
    NEXT(linkat);
    char path[PATH_MAX];
    if (has_rules()) {
        path_at(target_fd, target, path);
        if (fault_of_path(OP_CREATE, path))
            return -1;
    }
    return next(source_fd, source, target_fd, target, flags);
}

int link(const char *source, const char *target) {
    return linkat(AT_FDCWD, source, AT_FDCWD, target, 0);
}

int renameat(int source_fd, const char *source, int target_fd, const char *target) {
    NEXT(renameat);
    char from[PATH_MAX], to[PATH_MAX], grave[PATH_MAX];
    if (control == NULL)
        return next(source_fd, source, target_fd, target);
    path_at(source_fd, source, from);
    path_at(target_fd, target, to);
    if (fault_of_path(OP_RENAME, from) || fault_of_path(OP_RENAME, to))
        return -1;
    keep_file(to, grave);
    int result = next(source_fd, source, target_fd, target);
    if (result == 0)
        record_rename(from, to, grave);
    else
        forget_file(grave);
    return result;
}

int rename(const char *source, const char *target) {
    return renameat(AT_FDCWD, source, AT_FDCWD, target);
}

int unlinkat(int directory_fd, const char *name, int flags) {
    NEXT(unlinkat);
    char path[PATH_MAX], grave[PATH_MAX] = "";
    if (control == NULL)
        return next(directory_fd, name, flags);
    path_at(directory_fd, name, path);
    if (fault_of_path(OP_UNLINK, path))
        return -1;
    if (!(flags & AT_REMOVEDIR))
        keep_file(path, grave);
    int result = next(directory_fd, name, flags);
    if (result == 0)
        record_removal(path, grave);
    else
        forget_file(grave);
    return result;
}

int unlink(const char *name) {
    return unlinkat(AT_FDCWD, name, 0);
}

int rmdir(const char *name) {
    return unlinkat(AT_FDCWD, name, AT_REMOVEDIR);
}

/* ---- reading */

ssize_t read(int fd, void *data, size_t size) {
    NEXT(read);
    return fault_of_fd(OP_READ, fd, &size) ? -1 : next(fd, data, size);
}

ssize_t pread(int fd, void *data, size_t size, off_t position) {
    NEXT(pread);
    return fault_of_fd(OP_READ, fd, &size) ? -1 : next(fd, data, size, position);
}

ssize_t pread64(int fd, void *data, size_t size, off64_t position) {
    return pread(fd, data, size, position);
}

ssize_t __read_chk(int fd, void *data, size_t size, size_t room) {
    return size > room ? (abort(), -1) : read(fd, data, size);
}

ssize_t __pread_chk(int fd, void *data, size_t size, off_t position, size_t room) {
    return size > room ? (abort(), -1) : pread(fd, data, size, position);
}

ssize_t __pread64_chk(int fd, void *data, size_t size, off64_t position, size_t room) {
    return size > room ? (abort(), -1) : pread(fd, data, size, position);
}

ssize_t readv(int fd, const struct iovec *parts, int count) {
    NEXT(readv);
    FAIL_FD(OP_READ, fd);
    return next(fd, parts, count);
}

ssize_t preadv2(int fd, const struct iovec *parts, int count, off_t position, int flags) {
    NEXT(preadv2);
    FAIL_FD(OP_READ, fd);
    return next(fd, parts, count, position, flags);
}

ssize_t preadv64v2(int fd, const struct iovec *parts, int count, off64_t position, int flags) {
    return preadv2(fd, parts, count, position, flags);
}

ssize_t preadv(int fd, const struct iovec *parts, int count, off_t position) {
    return preadv2(fd, parts, count, position, 0);
}

ssize_t preadv64(int fd, const struct iovec *parts, int count, off64_t position) {
    return preadv2(fd, parts, count, position, 0);
}

ssize_t sendfile(int target, int source, off_t *position, size_t size) {
    NEXT(sendfile);
    FAIL_FD(OP_READ, source);
    FAIL_FD(OP_WRITE, target);
    return next(target, source, position, size);
}

ssize_t sendfile64(int target, int source, off64_t *position, size_t size) {
    return sendfile(target, source, position, size);
}

ssize_t copy_file_range(int source, off64_t *from, int target, off64_t *to, size_t size, unsigned flags) {
    NEXT(copy_file_range);
    FAIL_FD(OP_READ, source);
    return fault_of_fd(OP_WRITE, target, &size) ? -1 : next(source, from, target, to, size, flags);
}
