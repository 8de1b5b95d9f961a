/* Calls that programs rarely make: each way tries one thing and prints what came of it. x86_64 Linux. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/io_uring.h>
#include <linux/landlock.h>
#include <linux/openat2.h>
#include <mqueue.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fanotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define WAY(name) if (!strcmp(argv[1], name))
#define MAKE (O_WRONLY | O_CREAT | O_TRUNC)

static int fail(const char *what) { perror(what); return 1; }
static long now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec * 1000 + t.tv_nsec / 1000000; }
static int put(int fd) { return fd < 0 || write(fd, "pwn\n", 4) != 4 ? fail("write") : 0; }
static int show(int fd) {
    char text[4096];
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text);
    if (n < 0) return fail("read");
    return write(1, text, n) == n ? 0 : 1;
}

/* Calls by the door of 32-bit programs, which have other numbers; their addresses must be low. */
static long call32(long number, const char *path, long b, long c) {
    char *low = mmap((void *)0x10000000, 8192, 3, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
    long result;
    strcpy(low, path);
    __asm__ volatile("int $0x80" : "=a"(result) : "a"(number), "b"(low), "c"(b), "d"(c) : "memory", "r8", "r9", "r10", "r11");
    if (result < 0) { errno = -result; result = -1; }
    return result;
}

static int ring(int opcode, const char *path, int flags) {
    struct io_uring_params params = {0};
    int fd = syscall(SYS_io_uring_setup, 4, &params);
    if (fd < 0) return -1;
    char *sq = mmap(0, params.sq_off.array + 64, 3, MAP_SHARED, fd, IORING_OFF_SQ_RING);
    char *cq = mmap(0, params.cq_off.cqes + 16 * sizeof(struct io_uring_cqe), 3, MAP_SHARED, fd, IORING_OFF_CQ_RING);
    struct io_uring_sqe *entry = mmap(0, 4 * sizeof *entry, 3, MAP_SHARED, fd, IORING_OFF_SQES);
    memset(entry, 0, sizeof *entry);
    entry->opcode = opcode; entry->fd = AT_FDCWD; entry->addr = (uint64_t)path; entry->len = 0600; entry->open_flags = flags;
    *(unsigned *)(sq + params.sq_off.array) = 0;
    *(unsigned *)(sq + params.sq_off.tail) = 1;
    if (syscall(SYS_io_uring_enter, fd, 1, 1, IORING_ENTER_GETEVENTS, 0, 0) < 0) return -1;
    int result = ((struct io_uring_cqe *)(cq + params.cq_off.cqes))->res;
    if (result < 0) { errno = -result; return -1; }
    return result;
}

static int by_handle(const char *path, int flags) {
    union { struct file_handle h; char room[sizeof(struct file_handle) + MAX_HANDLE_SZ]; } it;
    int mount, root = open(".", O_RDONLY);
    it.h.handle_bytes = MAX_HANDLE_SZ;
    if (name_to_handle_at(AT_FDCWD, path, &it.h, &mount, 0)) return -1;
    return open_by_handle_at(root, &it.h, flags);
}

static int write_ways(int argc, char **argv) {
    const char *path = argv[2];
    WAY("openat") return put(syscall(SYS_openat, AT_FDCWD, path, MAKE, 0600));
    WAY("creat") return put(syscall(SYS_creat, path, 0600));
    WAY("openat2") { struct open_how how = {.flags = MAKE, .mode = 0600}; return put(syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof how)); }
    WAY("open32") { int fd = call32(5, path, MAKE, 0600); return put(fd); }
    WAY("mkdir32") return call32(39, path, 0700, 0) ? fail("mkdir") : 0;
    WAY("unlink32") return call32(10, path, 0, 0) ? fail("unlink") : 0;
    WAY("uring") return put(ring(IORING_OP_OPENAT, path, MAKE));
    WAY("sendfile") { int m = memfd_create("m", 0); put(m); lseek(m, 0, 0); int fd = open(path, MAKE, 0600); return sendfile(fd, m, 0, 4) == 4 ? 0 : fail("sendfile"); }
    WAY("splice") { int p[2]; if (pipe(p)) return 1; put(p[1]); int fd = open(path, MAKE, 0600); return splice(p[0], 0, fd, 0, 4, 0) == 4 ? 0 : fail("splice"); }
    WAY("copy_range") { int m = open("README.md", O_RDONLY), fd = open(path, O_WRONLY); return copy_file_range(m, 0, fd, 0, 4, 0) == 4 ? 0 : fail("copy_file_range"); }
    WAY("mmap") { int fd = open(path, O_RDWR | O_CREAT, 0600); if (fd < 0 || ftruncate(fd, 8)) return fail("open"); char *at = mmap(0, 8, 3, MAP_SHARED, fd, 0); if (at == MAP_FAILED) return fail("mmap"); memcpy(at, "pwnpwn", 6); return 0; }
    WAY("tmpfile") { char folder[4096], own[64]; strcpy(folder, path); *strrchr(folder, '/') = 0; int fd = open(folder, O_TMPFILE | O_WRONLY, 0600); if (put(fd)) return 1;
        sprintf(own, "/proc/self/fd/%d", fd); unlink(path); return linkat(AT_FDCWD, own, AT_FDCWD, path, AT_SYMLINK_FOLLOW) ? fail("linkat") : 0; }
    WAY("vfork") { if (!vfork()) { execl("/bin/sh", "sh", "-c", "echo pwn > \"$0\"", path, (char *)0); _exit(1); } wait(0); return 0; }
    WAY("clone") { int flags = CLONE_NEWUSER | CLONE_NEWNS | SIGCHLD; long pid = syscall(SYS_clone, flags, 0, 0, 0, 0); if (pid < 0) pid = fork(); if (!pid) _exit(put(open(path, MAKE, 0600))); wait(0); return 0; }
    WAY("landlock") { struct landlock_ruleset_attr attr = {.handled_access_fs = LANDLOCK_ACCESS_FS_MAKE_BLOCK}; int r = syscall(SYS_landlock_create_ruleset, &attr, sizeof attr, 0);
        syscall(SYS_landlock_restrict_self, r, 0); setresuid(-1, getuid(), -1); return put(open(path, MAKE, 0600)); }
    WAY("mkdirat") return mkdirat(AT_FDCWD, path, 0700) ? fail("mkdirat") : 0;
    WAY("symlinkat") return symlinkat("/etc/passwd", AT_FDCWD, path) ? fail("symlinkat") : 0;
    WAY("exchange") return syscall(SYS_renameat2, AT_FDCWD, path, AT_FDCWD, argv[3], 2) ? fail("renameat2") : 0;
    WAY("whiteout") { char other[4096]; sprintf(other, "%s.w", path); return syscall(SYS_renameat2, AT_FDCWD, path, AT_FDCWD, other, 4) && rename(path, other) ? fail("renameat2") : 0; }
    WAY("fchmodat2") return syscall(452, AT_FDCWD, path, 0777, 0) && chmod(path, 0777) ? fail("fchmodat2") : 0;
    WAY("setxattrat") { struct { uint64_t value; uint32_t size, flags; } args = {(uint64_t) "1", 1, 0};
        return syscall(463, AT_FDCWD, path, 0, "user.b", &args, sizeof args) && syscall(SYS_setxattr, path, "user.b", "1", 1, 0) ? fail("setxattrat") : 0; }
    WAY("utimensat") { struct timespec t[2] = {{1, 0}, {1, 0}}; return utimensat(AT_FDCWD, path, t, 0) ? fail("utimensat") : 0; }
    WAY("setversion") { int v = 4711, fd = open(path, O_RDONLY); return ioctl(fd, FS_IOC_SETVERSION, &v) ? fail("setversion") : 0; }
    WAY("setflags") { int v = 0, fd = open(path, O_RDONLY); ioctl(fd, FS_IOC_GETFLAGS, &v); v |= FS_NOATIME_FL; return ioctl(fd, FS_IOC_SETFLAGS, &v) ? fail("setflags") : 0; }
    WAY("fssetxattr") { struct fsxattr x; int fd = open(path, O_RDONLY); if (ioctl(fd, FS_IOC_FSGETXATTR, &x)) return fail("get"); x.fsx_xflags |= FS_XFLAG_NOATIME; return ioctl(fd, FS_IOC_FSSETXATTR, &x) ? fail("fssetxattr") : 0; }
    WAY("fchmod") { int fd = open(path, O_RDONLY); return fchmod(fd, 0777) ? fail("fchmod") : 0; }
    WAY("fchown") { int fd = open(path, O_RDONLY); return fchown(fd, getuid(), getgid()) ? fail("fchown") : 0; }
    WAY("futimens") { struct timespec t[2] = {{1, 0}, {1, 0}}; int fd = open(path, O_RDONLY); return futimens(fd, t) ? fail("futimens") : 0; }
    WAY("fsetxattr") { int fd = open(path, O_RDONLY); return syscall(SYS_fsetxattr, fd, "user.c", "1", 1, 0) ? fail("fsetxattr") : 0; }
    WAY("empty_chmod") { int fd = open(path, O_PATH); return syscall(452, fd, "", 0777, AT_EMPTY_PATH) && chmod(path, 0777) ? fail("fchmodat2") : 0; }
    WAY("empty_chown") { int fd = open(path, O_PATH); return fchownat(fd, "", getuid(), getgid(), AT_EMPTY_PATH) ? fail("fchownat") : 0; }
    WAY("empty_link") { char other[4096]; sprintf(other, "%s.x", path); int fd = open(path, O_PATH); return linkat(fd, "", AT_FDCWD, other, AT_EMPTY_PATH) && link(path, other) ? fail("linkat") : 0; }
    WAY("x32") { int fd = syscall(0x40000000 | SYS_openat, AT_FDCWD, path, MAKE, 0600); if (fd < 0) fd = open(path, MAKE, 0600); return put(fd); }
    WAY("old_calls") { unlink(path); return syscall(SYS_mknod, path, S_IFREG | 0600, 0) ? fail("mknod") : 0; }
    WAY("race") { /* another thread changes the name while the call is looked at */
        static char name[4096]; static volatile int stop; const char *names[2] = {argv[3], path}; strcpy(name, names[0]);
        int flip(void *unused) { for (unsigned n = 0; !stop; n++) strcpy(name, names[n & 1]); return 0; }
        char *stack = malloc(65536); clone(flip, stack + 65536, CLONE_VM | CLONE_FS | CLONE_FILES | SIGCHLD, 0);
        for (clock_t end = now() + 150; now() < end;) { chmod(name, 0700); int fd = open(name, O_WRONLY); if (fd >= 0) { put(fd); close(fd); } truncate(name, 3); syscall(SYS_setxattr, name, "user.r", "1", 1, 0); utimensat(AT_FDCWD, name, 0, 0); }
        stop = 1; wait(0); return 0; }
    WAY("race_folder") { /* another thread changes the working directory meanwhile */
        static volatile int stop; const char *folders[2] = {argv[3], argv[4]}; static int at[2]; at[0] = open(folders[0], O_PATH); at[1] = open(folders[1], O_PATH);
        int flip(void *unused) { for (unsigned n = 0; !stop; n++) fchdir(at[n & 1]); return 0; }
        char *stack = malloc(65536); clone(flip, stack + 65536, CLONE_VM | CLONE_FS | CLONE_FILES | SIGCHLD, 0);
        for (clock_t end = now() + 150; now() < end;) { int fd = open(path, O_WRONLY | O_CREAT, 0600); if (fd >= 0) { put(fd); close(fd); } chmod(path, 0700); }
        stop = 1; wait(0); return 0; }
    WAY("handle") return put(by_handle(path, O_WRONLY | O_TRUNC));
    WAY("mknod") return mknod(path, S_IFCHR | 0600, 0) ? fail("mknod") : 0;
    WAY("memfd_exec") { int m = memfd_create("m", MFD_CLOEXEC), fd = open(path, O_RDONLY); char part[65536]; ssize_t n;
        while ((n = read(fd, part, sizeof part)) > 0) if (write(m, part, n) != n) return 1;
        return fexecve(m, argv + 2, (char *[]){"PATH=/usr/bin:/bin", 0}) ? fail("fexecve") : 0; }
    return -1;
}

static int read_ways(int argc, char **argv) {
    const char *path = argv[2];
    WAY("read") return show(syscall(SYS_openat, AT_FDCWD, path, O_RDONLY));
    WAY("read2") { struct open_how how = {.flags = O_RDONLY}; return show(syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof how)); }
    WAY("read32") return show(call32(5, path, O_RDONLY, 0));
    WAY("readuring") return show(ring(IORING_OP_OPENAT, path, O_RDONLY));
    WAY("readhandle") return show(by_handle(path, O_RDONLY));
    WAY("readpath") { char own[64]; sprintf(own, "/proc/self/fd/%d", open(path, O_PATH)); return show(open(own, O_RDONLY)); }
    WAY("readmap") { int fd = open(path, O_RDONLY); char *at = mmap(0, 4096, 1, MAP_PRIVATE, fd, 0); return at == MAP_FAILED ? fail("mmap") : puts(at) < 0; }
    WAY("readsplice") { int p[2], fd = open(path, O_RDONLY); if (pipe(p)) return 1; if (splice(fd, 0, p[1], 0, 4096, 0) < 0) return fail("splice"); close(p[1]); return show(p[0]); }
    WAY("opentree") { char own[64]; int fd = syscall(428, AT_FDCWD, path, 1); if (fd < 0) fd = open(path, O_PATH); sprintf(own, "/proc/self/fd/%d", fd); return show(open(own, O_RDONLY)); }
    return -1;
}

static int send_pair(int type, const char *path, int abstract) {
    int pair[2];
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    socklen_t size = sizeof to;
    if (socketpair(AF_UNIX, type, 0, pair)) return fail("socketpair");
    if (abstract) { strcpy(to.sun_path + 1, path); size = offsetof(struct sockaddr_un, sun_path) + 1 + strlen(path); }
    else strcpy(to.sun_path, path);
    struct iovec part = {"pwn", 3};
    struct msghdr message = {.msg_name = &to, .msg_namelen = size, .msg_iov = &part, .msg_iovlen = 1};
    if (sendto(pair[0], "pwn", 3, 0, (void *)&to, size) == 3) return 0;
    if (sendmsg(pair[0], &message, 0) == 3) return 0;
    if (!connect(pair[0], (void *)&to, size) && write(pair[0], "pwn", 3) == 3) return 0;
    return fail("send");
}

static int process_ways(int argc, char **argv) {
    pid_t pid = atoi(argv[2]);
    WAY("kill") return kill(pid, SIGUSR1) ? fail("kill") : 0;
    WAY("tkill") return syscall(SYS_tkill, pid, SIGUSR1) ? fail("tkill") : 0;
    WAY("tgkill") return syscall(SYS_tgkill, pid, pid, SIGUSR1) ? fail("tgkill") : 0;
    WAY("sigqueue") return sigqueue(pid, SIGUSR1, (union sigval){0}) ? fail("sigqueue") : 0;
    WAY("pidfd_signal") { int fd = syscall(SYS_pidfd_open, pid, 0); return syscall(SYS_pidfd_send_signal, fd, SIGUSR1, 0, 0) ? fail("pidfd_send_signal") : 0; }
    WAY("kill32") { long r; __asm__ volatile("int $0x80" : "=a"(r) : "a"(37L), "b"((long)pid), "c"(10L) : "memory", "r8", "r9", "r10", "r11"); errno = -r; return r ? fail("kill") : 0; }
    WAY("setown") { int p[2]; if (pipe(p)) return 1; fcntl(p[0], F_SETOWN, pid); fcntl(p[0], F_SETSIG, SIGUSR1); fcntl(p[0], F_SETFL, O_ASYNC | O_NONBLOCK); return put(p[1]); }
    WAY("setown_socket") { int p[2]; if (socketpair(AF_UNIX, SOCK_STREAM, 0, p)) return 1; fcntl(p[0], F_SETOWN, pid); fcntl(p[0], F_SETSIG, SIGUSR1); fcntl(p[0], F_SETFL, O_ASYNC | O_NONBLOCK); return put(p[1]); }
    WAY("notify_lease") { int fd = open("README.md", O_RDONLY); fcntl(fd, F_SETOWN, pid); fcntl(fd, F_SETSIG, SIGUSR1); if (fcntl(fd, F_SETLEASE, F_RDLCK)) return fail("lease");
        if (!fork()) { open("README.md", O_WRONLY | O_NONBLOCK); truncate("README.md", 1); _exit(0); } sleep(0); wait(0); return 0; }
    WAY("ptrace") { if (ptrace(PTRACE_ATTACH, pid, 0, 0)) return fail("ptrace"); waitpid(pid, 0, 0); return ptrace(PTRACE_DETACH, pid, 0, SIGUSR1) ? fail("detach") : 0; }
    WAY("seize") { if (ptrace(PTRACE_SEIZE, pid, 0, 0)) return fail("seize"); ptrace(PTRACE_INTERRUPT, pid, 0, 0); waitpid(pid, 0, 0); return ptrace(PTRACE_POKEDATA, pid, strtoul(argv[3], 0, 16), 0x646e7770L) ? fail("poke") : 0; }
    WAY("vm_readv") { /* The environment lies at the top of the stack. */
        char name[64], line[512], text[262144]; unsigned long low = 0, high = 0; sprintf(name, "/proc/%d/maps", pid); FILE *maps = fopen(name, "r");
        while (maps && fgets(line, sizeof line, maps)) if (strstr(line, "[stack]")) sscanf(line, "%lx-%lx", &low, &high);
        if (!high && argc > 3) high = strtoul(argv[3], 0, 16), low = high - 65536;
        unsigned long size = high - low > sizeof text ? sizeof text : high - low;
        struct iovec here = {text, size}, there = {(void *)(high - size), size};
        ssize_t n = process_vm_readv(pid, &here, 1, &there, 1, 0); if (n < 0) return fail("process_vm_readv");
        return fwrite(text, 1, n, stdout) == (size_t)n ? 0 : 1; }
    WAY("vm_writev") { unsigned long at = strtoul(argv[3], 0, 16); struct iovec here = {"pwnd", 4}, there = {(void *)at, 4}; return process_vm_writev(pid, &here, 1, &there, 1, 0) == 4 ? 0 : fail("process_vm_writev"); }
    WAY("proc_mem") { char name[64]; sprintf(name, "/proc/%d/mem", pid); int fd = open(name, O_WRONLY); return pwrite(fd, "pwnd", 4, strtoul(argv[3], 0, 16)) == 4 ? 0 : fail("mem"); }
    WAY("pidfd_getfd") { int fd = syscall(SYS_pidfd_open, pid, 0), got = syscall(SYS_pidfd_getfd, fd, atoi(argv[3]), 0); if (got >= 0) lseek(got, 0, 0); return show(got); }
    WAY("prlimit") { struct rlimit l = {50, 50}; return prlimit(pid, RLIMIT_NOFILE, &l, 0) ? fail("prlimit") : 0; }
    WAY("priority") return setpriority(PRIO_PROCESS, pid, 7) ? fail("setpriority") : 0;
    WAY("ioprio") return syscall(SYS_ioprio_set, 1, pid, (3 << 13) | 7) ? fail("ioprio") : 0;
    WAY("affinity") { cpu_set_t set; CPU_ZERO(&set); CPU_SET(0, &set); return sched_setaffinity(pid, sizeof set, &set) ? fail("affinity") : 0; }
    WAY("scheduler") { struct sched_param p = {0}; return sched_setscheduler(pid, SCHED_BATCH, &p) ? fail("scheduler") : 0; }
    WAY("oom") { char name[64]; sprintf(name, "/proc/%d/oom_score_adj", pid); int fd = open(name, O_WRONLY); return write(fd, "500", 3) == 3 ? 0 : fail("oom"); }
    return -1;
}

static int other_ways(int argc, char **argv) {
    WAY("pair_datagram") return send_pair(SOCK_DGRAM, argv[2], 0);
    WAY("pair_raw") return send_pair(SOCK_RAW, argv[2], 0);
    WAY("pair_stream") return send_pair(SOCK_STREAM, argv[2], 0);
    WAY("pair_seqpacket") return send_pair(SOCK_SEQPACKET, argv[2], 0);
    WAY("abstract_datagram") return send_pair(SOCK_DGRAM, argv[2], 1);
    WAY("abstract_raw") return send_pair(SOCK_RAW, argv[2], 1);
    WAY("flagged_datagram") return send_pair(SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, argv[2], 0);
    WAY("flagged_raw") return send_pair(SOCK_RAW | SOCK_CLOEXEC, argv[2], 0);
    WAY("high_bits") { int pair[2]; struct sockaddr_un to = {.sun_family = AF_UNIX}; strcpy(to.sun_path, argv[2]); /* the kernel looks at 32 bits only */
        if (syscall(SYS_socketpair, 0x100000001L, 0x100000002L, 0, pair)) return fail("socketpair"); return sendto(pair[0], "pwn", 3, 0, (void *)&to, sizeof to) == 3 ? 0 : fail("sendto"); }
    WAY("socket32") { /* socketcall of 32-bit programs: socket(AF_UNIX, SOCK_DGRAM), then sendto */
        unsigned *low = mmap((void *)0x20000000, 4096, 3, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0); long r; low[0] = 1; low[1] = 2; low[2] = 0;
        __asm__ volatile("int $0x80" : "=a"(r) : "a"(102L), "b"(1L), "c"(low) : "memory", "r8", "r9", "r10", "r11"); if (r < 0) { errno = -r; return fail("socketcall"); }
        struct sockaddr_un *to = (void *)(low + 64); to->sun_family = AF_UNIX; strcpy(to->sun_path, argv[2]);
        return sendto(r, "pwn", 3, 0, (void *)to, sizeof *to) == 3 ? 0 : fail("sendto"); }
    WAY("mq_send") { mqd_t q = mq_open(argv[2], O_WRONLY | O_NONBLOCK); return q == (mqd_t)-1 || mq_send(q, "pwn", 3, 0) ? fail("mq_send") : 0; }
    WAY("mq_receive") { char text[8192]; mqd_t q = mq_open(argv[2], O_RDONLY | O_NONBLOCK); ssize_t n = q == (mqd_t)-1 ? -1 : mq_receive(q, text, sizeof text, 0); return n < 0 ? fail("mq_receive") : write(1, text, n) != n; }
    WAY("mq_unlink") return mq_unlink(argv[2]) ? fail("mq_unlink") : 0;
    WAY("mq_make") return mq_open(argv[2], O_CREAT | O_RDWR, 0600, 0) == (mqd_t)-1 ? fail("mq_open") : 0;
    WAY("uring_write") return put(ring(IORING_OP_OPENAT, argv[2], MAKE));
    WAY("fanotify") { int fd = fanotify_init(FAN_CLASS_NOTIF, O_RDONLY); if (fd < 0 || fanotify_mark(fd, FAN_MARK_ADD | FAN_MARK_FILESYSTEM, FAN_OPEN, AT_FDCWD, argv[2])) return fail("fanotify");
        if (!fork()) { open(argv[2], O_PATH); execl("/bin/cat", "cat", argv[2], (char *)0); _exit(1); } char event[4096]; if (read(fd, event, sizeof event) < 0) return fail("read"); return show(((struct fanotify_event_metadata *)event)->fd); }
    WAY("keys") { long key = syscall(SYS_add_key, "user", argv[2], "pwn", 3, -4); if (key < 0) return fail("add_key"); syscall(SYS_keyctl, 5, key, 0x3f3f3f3f); return 0; }
    WAY("tiocsti") { int fd = open(argv[2], O_RDWR | O_NOCTTY); char c = 'p'; if (fd >= 0) ioctl(fd, TIOCSCTTY, 1); return fd < 0 || ioctl(fd, TIOCSTI, &c) ? fail("tiocsti") : 0; }
    WAY("fds") { int left = 1; char text[4096]; for (int fd = 3; fd < 1024; fd++) { if (fcntl(fd, F_GETFD) < 0) continue; ssize_t n = pread(fd, text, sizeof text, 0); if (n > 0) left = write(1, text, n) != n;
            int at = openat(fd, argv[2], O_WRONLY | O_CREAT, 0600); if (at >= 0) put(at); } return left; }
    WAY("shadow_mount") { if (unshare(CLONE_NEWUSER | CLONE_NEWNS) && unshare(CLONE_NEWNS)) perror("unshare"); if (mount(argv[2], argv[3], 0, MS_BIND, 0)) perror("mount"); char path[4096]; sprintf(path, "%s/%s", argv[3], argv[4]); return put(open(path, MAKE, 0600)); }
    return -1;
}

int main(int argc, char **argv) {
    if (argc < 3) return 2;
    int (*ways[])(int, char **) = {write_ways, read_ways, process_ways, other_ways};
    for (int n = 0; n < 4; n++) { int result = ways[n](argc, argv); if (result >= 0) return result; }
    fprintf(stderr, "no such way: %s\n", argv[1]);
    return 2;
}
