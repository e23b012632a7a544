/* Preloaded into the program under test: writes every operation that changes a file or a folder to
 * the log named in ANYREC_SHIM_LOG, in the order in which they were done, and then lets it happen.
 *
 * A record is a line of words, after `write` followed by the bytes. Files are called by their inode
 * numbers, folder entries by the last part of their paths. Operations on paths outside the folder
 * ANYREC_SHIM_ROOT are left out; the test compares what the log amounts to with what is there in the
 * end, so that an operation missed here is found out. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define raw ((__typeof__(&syscall))dlsym(RTLD_NEXT, "syscall"))

/* Held from before an operation until it is in the log: the log has the order of the operations. */
static pthread_mutex_t order = PTHREAD_MUTEX_INITIALIZER;

static void note(const void *bytes, size_t size, const char *format, ...)
{
    static int log = -1;
    if (log < 0) {
        const char *path = getenv("ANYREC_SHIM_LOG");
        if (!path) return;
        log = (int)raw(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
        if (log < 0) abort();
    }
    char line[2 * PATH_MAX];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    struct iovec pieces[2] = {{line, (size_t)length}, {(void *)bytes, size}};
    if (raw(SYS_writev, log, pieces, 2) != length + (long)size) abort();
}

/* The last part of a path if it is in the folder under test, else null. */
static const char *name_of(const char *path)
{
    const char *root = getenv("ANYREC_SHIM_ROOT");
    const char *slash = strrchr(path, '/');
    if (!slash) return path;
    char folder[PATH_MAX], resolved[PATH_MAX];
    snprintf(folder, sizeof folder, "%.*s/", (int)(slash - path), path);
    return root && realpath(folder, resolved) && !strcmp(root, resolved) ? slash + 1 : 0;
}

static int keep_errno(int result, int error)
{
    errno = error;
    return result;
}

static unsigned long long inode(int descriptor, int *is_file, int *is_folder)
{
    struct stat status;
    if (fstat(descriptor, &status)) abort();
    if (is_file) *is_file = S_ISREG(status.st_mode);
    if (is_folder) *is_folder = S_ISDIR(status.st_mode);
    return status.st_ino;
}

static int open_any(const char *path, int flags, mode_t mode)
{
    pthread_mutex_lock(&order);
    int was_there = !access(path, F_OK);
    int descriptor = (int)raw(SYS_openat, AT_FDCWD, path, flags | O_LARGEFILE, mode);
    int error = errno;
    if (descriptor >= 0) {
        if ((flags & O_TMPFILE) == O_TMPFILE)
            note(0, 0, "temporary %llu\n", inode(descriptor, 0, 0));
        else if (flags & O_CREAT && !was_there && name_of(path))
            note(0, 0, "create %llu %s\n", inode(descriptor, 0, 0), name_of(path));
        else if (flags & O_TRUNC && name_of(path))
            note(0, 0, "truncate %llu 0\n", inode(descriptor, 0, 0));
    }
    pthread_mutex_unlock(&order);
    return keep_errno(descriptor, error);
}

#define OPEN(symbol)                                                                                    \
    int symbol(const char *path, int flags, ...)                                                        \
    {                                                                                                   \
        va_list arguments;                                                                              \
        va_start(arguments, flags);                                                                     \
        mode_t mode = flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(arguments, mode_t) : 0; \
        va_end(arguments);                                                                              \
        return open_any(path, flags, mode);                                                             \
    }
OPEN(open)
OPEN(open64)

static ssize_t write_any(int descriptor, const void *bytes, size_t size, off_t offset, int at)
{
    pthread_mutex_lock(&order);
    int is_file;
    unsigned long long file = inode(descriptor, &is_file, 0);
    off_t place = at ? offset : is_file ? lseek(descriptor, 0, SEEK_CUR) : 0;
    ssize_t written = at ? raw(SYS_pwrite64, descriptor, bytes, size, offset)
                         : raw(SYS_write, descriptor, bytes, size);
    int error = errno;
    if (written > 0 && is_file)
        note(bytes, (size_t)written, "write %llu %lld %zd\n", file, (long long)place, written);
    pthread_mutex_unlock(&order);
    errno = error;
    return written;
}

ssize_t write(int descriptor, const void *bytes, size_t size) { return write_any(descriptor, bytes, size, 0, 0); }
ssize_t pwrite(int descriptor, const void *bytes, size_t size, off_t offset)
{
    return write_any(descriptor, bytes, size, offset, 1);
}
ssize_t pwrite64(int descriptor, const void *bytes, size_t size, off64_t offset)
{
    return write_any(descriptor, bytes, size, offset, 1);
}

static int truncate_any(int descriptor, off_t length)
{
    pthread_mutex_lock(&order);
    int result = (int)raw(SYS_ftruncate, descriptor, length), error = errno;
    if (!result) note(0, 0, "truncate %llu %lld\n", inode(descriptor, 0, 0), (long long)length);
    pthread_mutex_unlock(&order);
    return keep_errno(result, error);
}
int ftruncate(int descriptor, off_t length) { return truncate_any(descriptor, length); }
int ftruncate64(int descriptor, off64_t length) { return truncate_any(descriptor, length); }

static int sync_any(int descriptor, long number)
{
    pthread_mutex_lock(&order);
    int result = (int)raw(number, descriptor), error = errno, is_folder;
    unsigned long long file = inode(descriptor, 0, &is_folder);
    if (!result && is_folder) note(0, 0, "sync folder\n");
    else if (!result) note(0, 0, "sync %llu\n", file);
    pthread_mutex_unlock(&order);
    return keep_errno(result, error);
}
int fsync(int descriptor) { return sync_any(descriptor, SYS_fsync); }
int fdatasync(int descriptor) { return sync_any(descriptor, SYS_fdatasync); }

int linkat(int from_folder, const char *from, int to_folder, const char *to, int flags)
{
    pthread_mutex_lock(&order);
    int result = (int)raw(SYS_linkat, from_folder, from, to_folder, to, flags), error = errno;
    struct stat status;
    if (!result && name_of(to)) {
        if (stat(to, &status)) abort();
        note(0, 0, "link %llu %s\n", (unsigned long long)status.st_ino, name_of(to));
    }
    pthread_mutex_unlock(&order);
    return keep_errno(result, error);
}
int link(const char *from, const char *to) { return linkat(AT_FDCWD, from, AT_FDCWD, to, 0); }

int renameat2(int from_folder, const char *from, int to_folder, const char *to, unsigned flags)
{
    pthread_mutex_lock(&order);
    int result = (int)raw(SYS_renameat2, from_folder, from, to_folder, to, flags), error = errno;
    if (!result && name_of(from) && name_of(to)) note(0, 0, "rename %s %s\n", name_of(from), name_of(to));
    pthread_mutex_unlock(&order);
    return keep_errno(result, error);
}
int renameat(int from_folder, const char *from, int to_folder, const char *to)
{
    return renameat2(from_folder, from, to_folder, to, 0);
}
int rename(const char *from, const char *to) { return renameat2(AT_FDCWD, from, AT_FDCWD, to, 0); }

int unlink(const char *path)
{
    pthread_mutex_lock(&order);
    int result = (int)raw(SYS_unlinkat, AT_FDCWD, path, 0), error = errno;
    if (!result && name_of(path)) note(0, 0, "unlink %s\n", name_of(path));
    pthread_mutex_unlock(&order);
    return keep_errno(result, error);
}

long syscall(long number, ...)
{
    long given[6];
    va_list arguments;
    va_start(arguments, number);
    for (int i = 0; i < 6; i++) given[i] = va_arg(arguments, long);
    va_end(arguments);
    if (number == SYS_renameat2)
        return renameat2((int)given[0], (const char *)given[1], (int)given[2], (const char *)given[3], (unsigned)given[4]);
    return raw(number, given[0], given[1], given[2], given[3], given[4], given[5]);
}
