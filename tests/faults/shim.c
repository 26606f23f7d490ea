// Preloaded by tests (LD_PRELOAD): makes the system fail when it is told to.
//
// fault_arm() says which calls count: those of some kinds, on files whose path has a text in it. At the n-th of them,
// or from it on, one thing happens: the call fails with an errno, is done in part, is interrupted, or the process is
// killed, before the call or after it. fault_count() says how many calls there were. Times of the day can be moved, too.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum How { FAIL, FAIL_ALWAYS, SHORT_ALWAYS, INTERRUPT_OFTEN, KILL, TEAR, KILL_AFTER };

static char pattern[PATH_MAX];  // empty: nothing is armed
static char kinds[256];
static long position;
static int number;
static enum How how;
static atomic_long calls;
static atomic_long shift;  // seconds
static atomic_long ticks_left;
static long next_shift;
static __thread int dies;  // when the call has been done

void fault_arm(const char *path, const char *which, long nth, int error, int what) {
  snprintf(kinds, sizeof kinds, ",%s,", which);
  position = nth;
  number = error;
  how = (enum How)what;
  calls = 0;
  snprintf(pattern, sizeof pattern, "%s", path);
}

long fault_count(void) { return calls; }

// Moves the time of the day by some seconds, as soon as it was asked for so often.
void fault_move_clock(long seconds, long after) {
  next_shift = seconds;
  ticks_left = after;
}

static void *real(const char *name) { return dlsym(RTLD_NEXT, name); }
#define REAL(name) \
  static __typeof__(name) *call; \
  if (!call) call = (__typeof__(name) *)real(#name)

static const char *path_of(int file, char *buffer) {
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  const ssize_t length = readlink(link, buffer, PATH_MAX - 1);
  buffer[length < 0 ? 0 : length] = 0;
  return buffer;
}

// Whether this call is the one at which something happens.
static int hit(const char *kind, const char *path) {
  if (!pattern[0] || !path || !strstr(path, pattern)) return 0;
  char wanted[64];
  snprintf(wanted, sizeof wanted, ",%s,", kind);
  if (!strstr(kinds, wanted)) return 0;
  const long now = ++calls;
  if (how == KILL || how == TEAR || how == FAIL || how == KILL_AFTER) {
    if (now != position) return 0;
    if (how == KILL) raise(SIGKILL);
    dies = how == KILL_AFTER;
    return !dies;
  }
  if (how == INTERRUPT_OFTEN) return now % 3 != 0;
  return position && now >= position;
}

static int fails(const char *kind, const char *path) {
  if (!hit(kind, path) || how == SHORT_ALWAYS || how == TEAR) return 0;
  errno = how == INTERRUPT_OFTEN ? EINTR : number;
  return 1;
}

static int survived(int result) {
  if (dies) raise(SIGKILL);
  return result;
}

// As fails(), for what moves bytes: how many are moved may also become less.
static int moves(const char *kind, int file, size_t *bytes) {
  if (!pattern[0]) return 1;
  char buffer[PATH_MAX];
  const int kept = errno;
  if (!hit(kind, path_of(file, buffer))) {
    errno = kept;
    return 1;
  }
  if (how == SHORT_ALWAYS || how == TEAR) {
    if (*bytes > 1) *bytes = (*bytes + 1) / 2;
    errno = kept;
    return how == TEAR ? 2 : 1;
  }
  errno = how == INTERRUPT_OFTEN ? EINTR : number;
  return 0;
}

static ssize_t torn(ssize_t done, int moved) {
  if (moved == 2) raise(SIGKILL);
  return done;
}

#define READS(name, kind, offset_type) \
  ssize_t name(int file, void *to, size_t bytes, offset_type at) { \
    REAL(name); \
    const int moved = moves(kind, file, &bytes); \
    return moved ? torn(call(file, to, bytes, at), moved) : -1; \
  }
READS(pread, "read", off_t)
READS(pread64, "read", off64_t)

ssize_t read(int file, void *to, size_t bytes) {
  REAL(read);
  const int moved = moves("read", file, &bytes);
  return moved ? torn(call(file, to, bytes), moved) : -1;
}

ssize_t write(int file, const void *from, size_t bytes) {
  REAL(write);
  const int moved = moves("write", file, &bytes);
  return moved ? torn(call(file, from, bytes), moved) : -1;
}

#define WRITES_AT(name, offset_type) \
  ssize_t name(int file, const void *from, size_t bytes, offset_type at) { \
    REAL(name); \
    const int moved = moves("write", file, &bytes); \
    return moved ? torn(call(file, from, bytes, at), moved) : -1; \
  }
WRITES_AT(pwrite, off_t)
WRITES_AT(pwrite64, off64_t)

// Of several pieces the first is moved, in part, when the call is cut short.
static int pieces(const char *kind, int file, const struct iovec **from, int *count, struct iovec *first) {
  size_t bytes = *count > 0 ? (*from)[0].iov_len : 0;
  const size_t all = bytes;
  const int moved = moves(kind, file, &bytes);
  if (bytes != all) {
    *first = (struct iovec){(*from)[0].iov_base, bytes};
    *from = first;
    *count = 1;
  }
  return moved;
}

ssize_t writev(int file, const struct iovec *from, int count) {
  REAL(writev);
  struct iovec first;
  const int moved = pieces("write", file, &from, &count, &first);
  return moved ? torn(call(file, from, count), moved) : -1;
}

#define WRITES_PIECES(name, offset_type) \
  ssize_t name(int file, const struct iovec *from, int count, offset_type at) { \
    REAL(name); \
    struct iovec first; \
    const int moved = pieces("write", file, &from, &count, &first); \
    return moved ? torn(call(file, from, count, at), moved) : -1; \
  }
WRITES_PIECES(pwritev, off_t)
WRITES_PIECES(pwritev64, off64_t)

#define OPENS(name) \
  int name(const char *path, int flags, ...) { \
    REAL(name); \
    va_list more; \
    va_start(more, flags); \
    const mode_t mode = va_arg(more, mode_t); \
    va_end(more); \
    return fails("open", path) ? -1 : call(path, flags, mode); \
  }
OPENS(open)
OPENS(open64)

#define TAKES_FILE(name, kind) \
  int name(int file) { \
    REAL(name); \
    char buffer[PATH_MAX]; \
    const int bad = pattern[0] && fails(kind, path_of(file, buffer)); \
    return bad ? -1 : survived(call(file)); \
  }
TAKES_FILE(fsync, "fsync")
TAKES_FILE(fdatasync, "fsync")

int close(int file) {  // the file is closed also when the system says that it could not be
  REAL(close);
  char buffer[PATH_MAX];
  const int bad = pattern[0] && how != INTERRUPT_OFTEN && fails("close", path_of(file, buffer));
  const int kept = errno, done = call(file);
  if (bad) errno = kept;
  return bad ? -1 : done;
}

int rename(const char *from, const char *to) {
  REAL(rename);
  return fails("rename", to) ? -1 : survived(call(from, to));
}

int link(const char *from, const char *to) {
  REAL(link);
  return fails("link", to) ? -1 : survived(call(from, to));
}

int unlink(const char *path) {
  REAL(unlink);
  return fails("unlink", path) ? -1 : survived(call(path));
}

int rmdir(const char *path) {
  REAL(rmdir);
  return fails("rmdir", path) ? -1 : survived(call(path));
}

int unlinkat(int folder, const char *path, int flags) {
  REAL(unlinkat);
  char whole[2 * PATH_MAX], buffer[PATH_MAX];
  const char *within = folder == AT_FDCWD || path[0] == '/' ? "" : path_of(folder, buffer);
  snprintf(whole, sizeof whole, "%s/%s", within, path);
  return fails(flags & AT_REMOVEDIR ? "rmdir" : "unlink", whole) ? -1 : survived(call(folder, path, flags));
}

int mkdir(const char *path, mode_t mode) {
  REAL(mkdir);
  return fails("mkdir", path) ? -1 : call(path, mode);
}

#define STATS(name, type) \
  int name(const char *path, struct type *status) { \
    REAL(name); \
    return fails("stat", path) ? -1 : call(path, status); \
  }
STATS(stat, stat)
STATS(stat64, stat64)
STATS(lstat, stat)
STATS(lstat64, stat64)

#define STATS_FILE(name, type) \
  int name(int file, struct type *status) { \
    REAL(name); \
    char buffer[PATH_MAX]; \
    const int bad = pattern[0] && fails("stat", path_of(file, buffer)); \
    return bad ? -1 : call(file, status); \
  }
STATS_FILE(fstat, stat)
STATS_FILE(fstat64, stat64)

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*root)(void *), void *argument) {
  REAL(pthread_create);
  return fails("thread", pattern) ? number : call(thread, attributes, root, argument);
}

static long moved_clock(void) {
  if (next_shift && --ticks_left <= 0) shift = next_shift;
  return shift;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
  REAL(clock_gettime);
  const int done = call(clock, now);
  if (clock == CLOCK_REALTIME) now->tv_sec += moved_clock();
  return done;
}

time_t time(time_t *now) {
  REAL(time);
  const time_t found = call(NULL) + moved_clock();
  if (now) *now = found;
  return found;
}
