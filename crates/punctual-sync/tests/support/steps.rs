//! Kills a process at every instruction of an operation on shared memory.

use std::io::Error;
use std::mem::MaybeUninit;
use std::ptr;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use punctual_process::child::{TEST_LIMIT, wait_for_fork};
use punctual_sync::shared::{Latest, Shareable, init_at, region_size};
use rustix::thread::{CpuSet, sched_getcpu, sched_setaffinity};
use test_skip::{Need, skip};

const SIZE: usize = 16 << 10;
/// More instructions than any operation here takes, including those that check which processes are
/// alive.
const MAX_STEPS: usize = 1_000_000;

/// Memory that is shared with forks.
pub(crate) struct Shared {
    start: *mut u8,
}

impl Shared {
    fn new() -> Self {
        let (rights, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS);
        // SAFETY: a new mapping, which replaces none.
        let start = unsafe { libc::mmap(ptr::null_mut(), SIZE, rights, flags, -1, 0) };
        assert_ne!(start, libc::MAP_FAILED, "{}", Error::last_os_error());
        Self { start: start.cast() }
    }

    fn init<T: Shareable>(&self, init: T::Init) -> &'static T {
        // SAFETY: the mapping exists until the process ends. A test creates one structure after the
        // other, and by then the processes that used the last one are dead and its threads have
        // ended.
        unsafe { init_at(self.start, SIZE, init) }.unwrap()
    }

    /// Returns `true` if the memory differs from `last`, and updates `last`.
    fn has_changed(&self, last: &mut Vec<u8>) -> bool {
        // System functions, since threads of this process may be writing too, as the child may at
        // other times.
        // SAFETY: both are valid for that many bytes.
        unsafe {
            let same = libc::memcmp(self.start.cast(), last.as_ptr().cast(), last.len()) == 0;
            libc::memcpy(last.as_mut_ptr().cast(), self.start.cast(), last.len());
            !same
        }
    }
}

/// The activity of a process when it was killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Killed {
    /// In the middle, after this number of changes to the memory.
    After(usize),
    /// Waiting in the kernel.
    Asleep,
    /// It had finished.
    Done,
}

/// Creates a structure in separate shared memory.
pub(crate) fn in_shared_memory<T: Shareable + 'static>(init: T::Init) -> &'static T {
    Shared::new().init(init)
}

/// Creates a structure, prepares it, lets another process perform `operation` on it, kills that
/// process, and has the structure checked: for every point at which it can be killed.
///
/// A dead process leaves behind only the memory. So it is enough to kill once after each
/// instruction that has changed it, before the first, and in a sleep: all other points leave the
/// same state. With `PUNCTUAL_EVERY_STEP` in the environment the process is killed after each
/// instruction, which takes hours.
pub(crate) fn kill_at_every_step<T: Shareable + 'static, P>(
    init: impl Fn() -> T::Init,
    prepare: impl Fn(&'static T) -> P,
    operation: impl Fn(&'static T),
    check: impl Fn(&'static T, P, Killed),
) {
    stay_on_one_cpu();
    let memory = Shared::new();
    let every_step = std::env::var_os("PUNCTUAL_EVERY_STEP").is_some();
    for after in 0.. {
        let structure = memory.init::<T>(init());
        let prepared = prepare(structure);
        let Some(child) = Child::fork(|| operation(structure)) else {
            return skip(Need::System("ptrace"), "a process killed at every instruction");
        };
        let killed = child.step(&memory, region_size::<T>(), after, every_step);
        child.kill();
        check(structure, prepared, killed);
        if !matches!(killed, Killed::After(_)) {
            assert!(after > 0, "the operation must change the memory");
            return;
        }
    }
}

/// Pins the calling thread, and so all that it starts, to the CPU on which it runs: to wake a
/// process there for each instruction takes a fraction of the time.
fn stay_on_one_cpu() {
    let mut one = CpuSet::new();
    one.set(sched_getcpu());
    sched_setaffinity(None, &one).expect("a thread can choose one of its CPUs");
}

/// A forked process that is traced by this thread.
pub(crate) struct Child(libc::pid_t);

impl Child {
    /// Starts a process that stops before `operation` and after it; `None` if it may not be traced.
    pub(crate) fn fork(operation: impl FnOnce()) -> Option<Self> {
        // The child must not allocate, since another thread may have held the allocator's lock at
        // that moment.
        // SAFETY: the child only runs `operation` and system calls, and ends without running any
        // other code.
        let pid = unsafe { libc::fork() };
        assert!(pid >= 0, "{}", Error::last_os_error());
        if pid == 0 {
            // SAFETY: passes numbers only.
            unsafe {
                if libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) != 0 {
                    libc::_exit(77);
                }
                // Learns its identity now: that takes many steps, none of which changes shared
                // memory.
                identify_process();
                libc::raise(libc::SIGSTOP);
                operation();
                libc::raise(libc::SIGSTOP);
                libc::_exit(0);
            }
        }
        let child = Self(pid);
        match child.wait() {
            Some(libc::SIGSTOP) => {
                // SAFETY: passes numbers only. The child does not outlive this process if that is
                // killed.
                unsafe { libc::ptrace(libc::PTRACE_SETOPTIONS, pid, 0, libc::PTRACE_O_EXITKILL) };
                Some(child)
            }
            Some(signal) => panic!("stopped by signal {signal}"),
            None => None,
        }
    }

    /// Runs the process until the memory has changed `after` times.
    fn step(&self, memory: &Shared, size: usize, after: usize, every_step: bool) -> Killed {
        let (mut last, mut changes) = (vec![0; size], 0);
        memory.has_changed(&mut last);
        for _ in 0..MAX_STEPS {
            if changes == after {
                return Killed::After(after);
            }
            let may_sleep = self.is_at_system_call();
            self.go_on(true);
            match if may_sleep { self.wait_awake() } else { Some(self.wait_for_instruction()) } {
                None => return Killed::Asleep,
                Some(libc::SIGSTOP) => return Killed::Done,
                Some(signal) => assert_eq!(signal, libc::SIGTRAP, "the operation faults"),
            }
            if memory.has_changed(&mut last) || every_step {
                changes += 1;
            }
        }
        panic!("the operation does not end");
    }

    /// Runs the process to the end of the operation, or until it sleeps.
    pub(crate) fn run(&self) {
        self.start();
        self.wait_awake();
    }

    /// Continues the process.
    pub(crate) fn start(&self) {
        self.go_on(false);
    }

    pub(crate) fn kill(self) {
        // SAFETY: passes numbers only; the child has not been waited for, so the PID still belongs
        // to it.
        unsafe { libc::kill(self.0, libc::SIGKILL) };
        while self.wait().is_some() {}
    }

    fn go_on(&self, by_one: bool) {
        let request = if by_one { libc::PTRACE_SINGLESTEP } else { libc::PTRACE_CONT };
        // SAFETY: passes numbers only.
        assert_eq!(unsafe { libc::ptrace(request, self.0, 0, 0) }, 0, "{}", Error::last_os_error());
    }

    /// Waits until the process has stopped, and returns the signal; `None` if it has ended.
    fn wait(&self) -> Option<i32> {
        let status = wait_for_fork(self.0, TEST_LIMIT).expect("the process stops or ends");
        libc::WIFSTOPPED(status).then(|| libc::WSTOPSIG(status))
    }

    /// Returns `true` if the next instruction enters the kernel, where the process may sleep.
    fn is_at_system_call(&self) -> bool {
        let mut registers = MaybeUninit::<libc::user_regs_struct>::uninit();
        let size = size_of::<libc::user_regs_struct>();
        let mut place = libc::iovec { iov_base: registers.as_mut_ptr().cast(), iov_len: size };
        // SAFETY: the registers are valid for writes of that many bytes.
        let read = unsafe {
            libc::ptrace(libc::PTRACE_GETREGSET, self.0, libc::NT_PRSTATUS as usize, &raw mut place)
        };
        assert_eq!(read, 0, "{}", Error::last_os_error());
        // SAFETY: the kernel has written them.
        let registers = unsafe { registers.assume_init() };
        // `syscall`, and `svc #0`.
        #[cfg(target_arch = "x86_64")]
        let (address, mask, call) = (registers.rip, 0xffff, 0x050f);
        #[cfg(target_arch = "aarch64")]
        let (address, mask, call) = (registers.pc, 0xffff_ffff, 0xd400_0001);
        // SAFETY: passes numbers only.
        let word = unsafe { libc::ptrace(libc::PTRACE_PEEKTEXT, self.0, address as usize, 0_usize) };
        word & mask == call
    }

    /// Waits until the process has executed an instruction in user space, and returns the signal.
    #[expect(clippy::disallowed_methods, reason = "an instruction ends, or the process is killed")]
    fn wait_for_instruction(&self) -> i32 {
        let mut status = 0;
        // SAFETY: the status is valid for writes.
        let waited = unsafe { libc::waitpid(self.0, &raw mut status, 0) };
        assert!(waited == self.0 && libc::WIFSTOPPED(status), "the process ends: {status:#x}");
        libc::WSTOPSIG(status)
    }

    /// Waits until the process has stopped, and returns the signal; `None` if it sleeps.
    #[expect(clippy::disallowed_methods, reason = "it does not block, because of WNOHANG")]
    fn wait_awake(&self) -> Option<i32> {
        let (mut asleep, begun) = (0, Instant::now());
        for turn in 0_u32.. {
            let mut status = 0;
            // SAFETY: the status is valid for writes.
            match unsafe { libc::waitpid(self.0, &raw mut status, libc::WNOHANG) } {
                0 => {}
                _ => return Some(libc::WSTOPSIG(status)),
            }
            // Usually it stops at once.
            if turn < 100 {
                continue;
            }
            if begun.elapsed() > TEST_LIMIT {
                // SAFETY: passes numbers only; the child has not been waited for.
                unsafe { libc::kill(self.0, libc::SIGKILL) };
                panic!("the process neither stops nor sleeps");
            }
            // Twice: it may be between a sleep and a stop.
            asleep = if is_asleep(&format!("/proc/{}/stat", self.0)) { asleep + 1 } else { 0 };
            if asleep == 2 {
                return None;
            }
            std::thread::yield_now();
        }
        unreachable!("the process stops, sleeps or is killed")
    }
}

fn is_asleep(stat: &str) -> bool {
    let stat = std::fs::read_to_string(stat).unwrap();
    stat.rsplit(") ").next().is_some_and(|fields| fields.starts_with('S'))
}

/// Starts a thread, and waits until it sleeps.
pub(crate) fn start_asleep<R: Send + 'static>(wait: impl FnOnce() -> R + Send + 'static) -> JoinHandle<R> {
    let (send, receive) = std::sync::mpsc::channel();
    let thread = std::thread::spawn(move || {
        // SAFETY: passes no arguments.
        send.send(unsafe { libc::gettid() }).unwrap();
        wait()
    });
    let stat = format!("/proc/self/task/{}/stat", receive.recv().unwrap());
    while !is_asleep(&stat) {
        std::thread::yield_now();
    }
    thread
}

/// Returns the result of a thread that nothing blocks any more, within a minute.
pub(crate) fn end_of<R>(thread: JoinHandle<R>) -> R {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !thread.is_finished() {
        assert!(Instant::now() < deadline, "the thread still waits");
        std::thread::yield_now();
    }
    thread.join().unwrap()
}

/// Makes the calling process query its identity, as it would at its first use of shared memory.
fn identify_process() {
    #[repr(C, align(4096))]
    struct Memory([u8; 4096]);
    let mut memory = Memory([0; 4096]);
    // SAFETY: the memory outlives the reference and has no other user.
    let cell: &Latest<u32> = unsafe { init_at(memory.0.as_mut_ptr(), 4096, 0) }.unwrap();
    drop(cell.writer());
}
