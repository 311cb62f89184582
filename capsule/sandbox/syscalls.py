"""The system calls of both architectures as data: what a guest may call, and what it is told it may not.

Each is ``name x86-64 arm64``, ``-`` where an architecture lacks it. A call that isn't here, clone3 above
all, gets ENOSYS, so that the C library falls back to an older one; a denied one gets EPERM.
"""

from __future__ import annotations

import errno

import msgspec

FILES = """
read 0 63; write 1 64; readv 19 65; writev 20 66; pread64 17 67; pwrite64 18 68; preadv 295 69; pwritev 296 70;
preadv2 327 286; pwritev2 328 287; open 2 -; openat 257 56; close 3 57; close_range 436 436; stat 4 -;
fstat 5 80; lstat 6 -; newfstatat 262 79; statx 332 291; access 21 -; faccessat 269 48; faccessat2 439 439;
readlink 89 -; readlinkat 267 78; lseek 8 62; fcntl 72 25; dup 32 23; dup2 33 -; dup3 292 24; pipe 22 -;
pipe2 293 59; truncate 76 45; ftruncate 77 46; fallocate 285 47; fadvise64 221 223; fsync 74 82;
fdatasync 75 83; getdents 78 -; getdents64 217 61; getcwd 79 17; chdir 80 49; fchdir 81 50; mkdir 83 -;
mkdirat 258 34; rmdir 84 -; unlink 87 -; unlinkat 263 35; rename 82 -; renameat 264 38; renameat2 316 276;
link 86 -; linkat 265 37; symlink 88 -; symlinkat 266 36; chmod 90 -; fchmod 91 52; fchmodat 268 53;
fchmodat2 452 452; utime 132 -; utimes 235 -; futimesat 261 -; utimensat 280 88; umask 95 166; flock 73 32;
statfs 137 43; fstatfs 138 44; sendfile 40 71; copy_file_range 326 285; getxattr 191 8; lgetxattr 192 9;
fgetxattr 193 10; listxattr 194 11; llistxattr 195 12; flistxattr 196 13
"""
MEMORY = """
mprotect 10 226; munmap 11 215; mremap 25 216; brk 12 214; madvise 28 233; msync 26 227;
mincore 27 232; membarrier 324 283
"""
THREADS = """
futex 202 98; set_robust_list 273 99; get_robust_list 274 100; rseq 334 293; set_tid_address 218 96;
gettid 186 178; getpid 39 172; getppid 110 173; getpgid 121 155; getpgrp 111 -; getsid 124 156; exit 60 93;
exit_group 231 94; sched_yield 24 124; sched_getaffinity 204 123; sched_getparam 143 121;
sched_getscheduler 145 120; sched_get_priority_max 146 125; sched_get_priority_min 147 126; getcpu 309 168;
getpriority 140 141; wait4 61 260; waitid 247 95
"""
TIME = """
clock_gettime 228 113; clock_getres 229 114; clock_nanosleep 230 115; nanosleep 35 101; gettimeofday 96 169;
time 201 -; times 100 153; getitimer 36 102; setitimer 38 103; alarm 37 -; pause 34 -; timerfd_create 283 85;
timerfd_settime 286 86; timerfd_gettime 287 87
"""
SIGNALS = """
rt_sigaction 13 134; rt_sigprocmask 14 135; rt_sigreturn 15 139; rt_sigpending 127 136; rt_sigtimedwait 128 137;
rt_sigsuspend 130 133; sigaltstack 131 132; signalfd 282 -; signalfd4 289 74; kill 62 129; tkill 200 130;
tgkill 234 131; restart_syscall 219 128
"""
WAITING = """
select 23 -; pselect6 270 72; poll 7 -; ppoll 271 73; epoll_create 213 -; epoll_create1 291 20;
epoll_ctl 233 21; epoll_wait 232 -; epoll_pwait 281 22; epoll_pwait2 441 441; eventfd 284 -; eventfd2 290 19
"""
CONNECTED = """
shutdown 48 210; getsockname 51 204; getpeername 52 205; getsockopt 55 209
"""
FACTS = """
uname 63 160; sysinfo 99 179; getuid 102 174; geteuid 107 175; getgid 104 176; getegid 108 177;
getresuid 118 148; getresgid 120 150; getgroups 115 158; getrusage 98 165; getrlimit 97 163; setrlimit 160 164;
prlimit64 302 261; getrandom 318 278; capget 125 90
"""
CHECKED = """
mmap 9 222; clone 56 220; socketpair 53 199; prctl 157 167; ioctl 16 29; sendto 44 206; recvfrom 45 207; sendmsg 46 211;
recvmsg 47 212; sendmmsg 307 269; recvmmsg 299 243; setsockopt 54 208
"""
DENIED = """
fork 57 -; vfork 58 -; execve 59 221; execveat 322 281; ptrace 101 117; process_vm_readv 310 270;
process_vm_writev 311 271; process_madvise 440 440; kcmp 312 272; pidfd_open 434 434; pidfd_getfd 438 438;
pidfd_send_signal 424 424; socket 41 198; connect 42 203; bind 49 200; listen 50 201; accept 43 202;
accept4 288 242; unshare 272 97; setns 308 268; mount 165 40; umount2 166 39; pivot_root 155 41; chroot 161 51;
open_tree 428 428; move_mount 429 429; fsopen 430 430; fsconfig 431 431; fsmount 432 432; fspick 433 433;
mount_setattr 442 442; add_key 248 217; request_key 249 218; keyctl 250 219; bpf 321 280;
perf_event_open 298 241; io_uring_setup 425 425; io_uring_enter 426 426; io_uring_register 427 427;
userfaultfd 323 282; memfd_create 319 279; memfd_secret 447 447; shmget 29 194; shmat 30 196; shmctl 31 195;
shmdt 67 197; msgget 68 186; msgsnd 69 189; msgrcv 70 188; msgctl 71 187; semget 64 190; semop 65 193;
semctl 66 191; semtimedop 220 192; mq_open 240 180; mq_unlink 241 181; mq_timedsend 242 182;
mq_timedreceive 243 183; mq_notify 244 184; mq_getsetattr 245 185; open_by_handle_at 304 265;
name_to_handle_at 303 264; fanotify_init 300 262; fanotify_mark 301 263; inotify_init 253 -;
inotify_init1 294 26; inotify_add_watch 254 27; mknod 133 -; mknodat 259 33; chown 92 -; fchown 93 55;
lchown 94 -; fchownat 260 54; setxattr 188 5; lsetxattr 189 6; fsetxattr 190 7; removexattr 197 14;
lremovexattr 198 15; fremovexattr 199 16; setuid 105 146; setgid 106 144; setreuid 113 145; setregid 114 143;
setresuid 117 147; setresgid 119 149; setgroups 116 159; setfsuid 122 151; setfsgid 123 152; capset 126 91;
personality 135 92; seccomp 317 277; sched_setaffinity 203 122; sched_setscheduler 144 119;
sched_setparam 142 118; sched_setattr 314 274; setpriority 141 140; ioprio_set 251 30; mlock 149 228;
mlock2 325 284; mlockall 151 230; sync 162 81; syncfs 306 267; clock_settime 227 112; clock_adjtime 305 266;
settimeofday 164 170; adjtimex 159 171; sethostname 170 161; setdomainname 171 162; init_module 175 105;
finit_module 313 273; delete_module 176 106; kexec_load 246 104; kexec_file_load 320 294; reboot 169 142;
swapon 167 224; swapoff 168 225; syslog 103 116; acct 163 89; quotactl 179 60; quotactl_fd 443 443;
vhangup 153 58; lookup_dcookie 212 18; iopl 172 -; ioperm 173 -; modify_ldt 154 -; move_pages 279 239;
migrate_pages 256 238; mbind 237 235; set_mempolicy 238 237; setpgid 109 154; setsid 112 157
"""

ALLOWED = (FILES, MEMORY, THREADS, TIME, SIGNALS, WAITING, CONNECTED, FACTS)
COLUMNS = {"x86_64": 1, "aarch64": 2}


class Argument(msgspec.Struct, frozen=True):
    """An argument, from 0: satisfied when its low 32 bits, masked, are one of ``values``."""

    position: int
    mask: int
    values: tuple[int, ...]


CLONE_THREAD = 0x0001_0000
CLONE_NEW = 0x7E02_0000  # every kind of namespace
AF_UNIX, SOCK_STREAM = 1, 1
IOCTLS = (0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451)  # TCGETS TIOCGWINSZ FIONREAD FIONBIO FIONCLEX FIOCLEX
PRCTLS = (15, 16, 39, 0x53564D41)  # PR_SET_NAME PR_GET_NAME PR_GET_NO_NEW_PRIVS PR_SET_VMA
MAP_KINDS = 0x23  # MAP_SHARED MAP_PRIVATE MAP_ANONYMOUS
MSG_OOB = 1
SOL_SOCKET = 1
OPTIONS = (7, 8, 20, 21)  # SO_SNDBUF SO_RCVBUF SO_RCVTIMEO SO_SNDTIMEO

# A thread, never a process; a stream pair, since a datagram socket can send to any path; no typing into a
# terminal; no way to cut the tie to the parent (PR_SET_PDEATHSIG). Nothing out of band and no filters on a socket:
# little used parts of the kernel, which sandboxes were left through. No shared memory without a file, since no limit
# counts that as the process's own. All that stand beside a call must hold.
CHECKS = {
    "mmap": (Argument(3, MAP_KINDS, (0x01, 0x02, 0x03, 0x22)),),
    "clone": (Argument(0, CLONE_THREAD | CLONE_NEW, (CLONE_THREAD,)),),
    "socketpair": (Argument(0, 0xFFFF_FFFF, (AF_UNIX,)), Argument(1, 0xF, (SOCK_STREAM,))),
    "prctl": (Argument(0, 0xFFFF_FFFF, PRCTLS),),
    "ioctl": (Argument(1, 0xFFFF_FFFF, IOCTLS),),
    "sendto": (Argument(3, MSG_OOB, (0,)),),
    "recvfrom": (Argument(3, MSG_OOB, (0,)),),
    "sendmsg": (Argument(2, MSG_OOB, (0,)),),
    "recvmsg": (Argument(2, MSG_OOB, (0,)),),
    "sendmmsg": (Argument(3, MSG_OOB, (0,)),),
    "recvmmsg": (Argument(3, MSG_OOB, (0,)),),
    "setsockopt": (Argument(1, 0xFFFF_FFFF, (SOL_SOCKET,)), Argument(2, 0xFFFF_FFFF, OPTIONS)),
}
UNKNOWN_ERRNO = errno.ENOSYS
DENIED_ERRNO = errno.EPERM


def numbers(machine: str, *tables: str) -> dict[str, int]:
    """The calls of some tables that an architecture has, by name."""
    column = COLUMNS[machine]
    rows = (row.split() for table in tables for row in table.split(";"))
    return {row[0]: int(row[column]) for row in rows if row[column] != "-"}
