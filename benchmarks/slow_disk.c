/* A folder shown once more, on a file system whose every read takes its time. For root, on Linux.
 *
 *     cc -O2 -pthread slow_disk.c -o slow_disk && ./slow_disk FOLDER MOUNT_POINT MILLISECONDS
 *
 * It speaks the protocol of FUSE itself and needs no library. Up to THREADS reads are under way at a time, as on a disk
 * in a network. It ends when its mount point is unmounted. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fuse.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 256, REQUEST_BYTES = 1 << 18, MOST_FILES = 1 << 16 };

static int device;
static struct timespec delay;
static char *paths[MOST_FILES]; /* of node i; FUSE's root is node 1 */
static uint64_t nodes = 2;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void answer(const struct fuse_in_header *to, int error, const void *data, size_t bytes) {
  struct fuse_out_header head = {.len = (uint32_t)(sizeof head + bytes), .error = -error, .unique = to->unique};
  struct iovec pieces[2] = {{&head, sizeof head}, {(void *)data, bytes}};
  if (writev(device, pieces, 2) < 0 && errno != ENOENT) perror("answer");
}

static uint64_t node_of(uint64_t parent, const char *name) {
  char path[PATH_MAX];
  snprintf(path, sizeof path, "%s/%s", paths[parent], name);
  pthread_mutex_lock(&mutex);
  uint64_t node = 2;
  while (node < nodes && strcmp(paths[node], path)) ++node;
  if (node == nodes && node < MOST_FILES) paths[nodes++] = strdup(path);
  pthread_mutex_unlock(&mutex);
  return node;
}

static int attributes(uint64_t node, struct fuse_attr *out) {
  struct stat s;
  if (stat(paths[node], &s)) return errno;
  *out = (struct fuse_attr){.ino = node, .size = (uint64_t)s.st_size, .blocks = (uint64_t)s.st_blocks,
      .mtime = (uint64_t)s.st_mtime, .ctime = (uint64_t)s.st_ctime, .mode = s.st_mode, .nlink = 1, .blksize = 4096};
  return 0;
}

static void list(const struct fuse_in_header *in, const struct fuse_read_in *read) {
  static __thread char buffer[1 << 16];
  size_t used = 0;
  uint64_t at = 0;
  DIR *folder = opendir(paths[in->nodeid]);
  for (struct dirent *e; folder && (e = readdir(folder));) {
    size_t name = strlen(e->d_name), bytes = FUSE_DIRENT_ALIGN(FUSE_NAME_OFFSET + name);
    if (++at <= read->offset) continue;
    if (used + bytes > read->size || used + bytes > sizeof buffer) break;
    struct fuse_dirent *out = (struct fuse_dirent *)(buffer + used);
    *out = (struct fuse_dirent){.ino = at, .off = at, .namelen = (uint32_t)name, .type = e->d_type};
    memcpy(out->name, e->d_name, name);
    used += bytes;
  }
  if (folder) closedir(folder);
  answer(in, 0, buffer, used);
}

static void serve(const struct fuse_in_header *in, char *data) {
  const void *body = in + 1;
  switch (in->opcode) {
    case FUSE_INIT: {
      const struct fuse_init_in *asked = body;
      struct fuse_init_out out = {.major = 7, .minor = 31, .max_readahead = asked->max_readahead,
          .flags = FUSE_ASYNC_READ | FUSE_PARALLEL_DIROPS, .max_background = THREADS, .congestion_threshold = THREADS,
          .max_write = 4096, .time_gran = 1};
      return answer(in, 0, &out, sizeof out);
    }
    case FUSE_LOOKUP: {
      struct fuse_entry_out out = {.nodeid = node_of(in->nodeid, body), .entry_valid = 3600, .attr_valid = 3600};
      int error = attributes(out.nodeid, &out.attr);
      return answer(in, error, &out, error ? 0 : sizeof out);
    }
    case FUSE_GETATTR: {
      struct fuse_attr_out out = {.attr_valid = 3600};
      int error = attributes(in->nodeid, &out.attr);
      return answer(in, error, &out, error ? 0 : sizeof out);
    }
    case FUSE_OPEN: {
      struct fuse_open_out out = {.open_flags = FOPEN_KEEP_CACHE};
      int file = open(paths[in->nodeid], O_RDONLY);
      out.fh = (uint64_t)file;
      return answer(in, file < 0 ? errno : 0, &out, file < 0 ? 0 : sizeof out);
    }
    case FUSE_OPENDIR: {
      struct fuse_open_out out = {.fh = 0};
      return answer(in, 0, &out, sizeof out);
    }
    case FUSE_READ: {
      const struct fuse_read_in *read = body;
      nanosleep(&delay, 0);
      ssize_t got = pread((int)read->fh, data, read->size, (off_t)read->offset);
      return answer(in, got < 0 ? errno : 0, data, got < 0 ? 0 : (size_t)got);
    }
    case FUSE_READDIR: return list(in, body);
    case FUSE_RELEASE: close((int)((const struct fuse_release_in *)body)->fh); return answer(in, 0, 0, 0);
    case FUSE_RELEASEDIR: case FUSE_FLUSH: return answer(in, 0, 0, 0);
    case FUSE_FORGET: case FUSE_BATCH_FORGET: case FUSE_INTERRUPT: return;
    default: answer(in, ENOSYS, 0, 0);
  }
}

static void *work(void *unused) {
  char *request = malloc(REQUEST_BYTES), *data = malloc(1 << 20);
  for (;;) {
    ssize_t got = read(device, request, REQUEST_BYTES);
    if (got < 0 && (errno == EINTR || errno == EAGAIN || errno == ENOENT)) continue;
    if (got <= 0) return unused; /* unmounted */
    serve((const struct fuse_in_header *)request, data);
  }
}

int main(int count, char **words) {
  if (count != 4) return fprintf(stderr, "slow_disk FOLDER MOUNTPOINT MILLISECONDS\n"), 2;
  long micros = (long)(atof(words[3]) * 1000);
  delay = (struct timespec){micros / 1000000, micros % 1000000 * 1000};
  paths[1] = realpath(words[1], 0);
  device = open("/dev/fuse", O_RDWR);
  char options[100];
  snprintf(options, sizeof options, "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other", device);
  if (!paths[1] || device < 0 || mount("slow_disk", words[2], "fuse.slow_disk", MS_RDONLY | MS_NOSUID, options))
    return perror(words[2]), 1;
  pthread_t threads[THREADS];
  for (int i = 0; i < THREADS; ++i) pthread_create(&threads[i], 0, work, 0);
  for (int i = 0; i < THREADS; ++i) pthread_join(threads[i], 0);
  return 0;
}
