//! Stopping a thread of another process, and copying its registers and its stack.

use std::cell::RefCell;
use std::fs;
use std::io::{Error, IoSliceMut};
use std::mem::MaybeUninit;
use std::ops::Range;
use std::time::{Duration, Instant};

use framehop::UnwindRegsNative;
use punctual_process::scheduling::without_real_time;

use crate::child;

/// The time limit for a thread to stop: it may be inside a long system call.
const STOP_TIMEOUT: Duration = Duration::from_millis(500);
const GLANCE: Duration = Duration::from_micros(200);
/// The maximum number of bytes copied from a stack.
const STACK: u64 = 512 * 1024;
/// The maximum distance below its stack of a thread that has overflowed it: the guard pages.
const GUARD: u64 = 1024 * 1024;

/// The copied state of a thread.
#[derive(Debug)]
pub(crate) struct Stopped {
    pub(crate) ip: u64,
    pub(crate) registers: UnwindRegsNative,
    /// The text of `/proc/PID/maps`.
    pub(crate) maps: String,
    memory: Vec<u8>,
    /// The address of the first byte of the memory.
    start: u64,
}

impl Stopped {
    /// Returns the word at an address of the stack, if it was copied.
    pub(super) fn word(&self, address: u64) -> Option<u64> {
        let from = usize::try_from(address.checked_sub(self.start)?).ok()?;
        Some(u64::from_ne_bytes(*self.memory.get(from..)?.first_chunk()?))
    }
}

/// Stops a thread, copies its stack and resumes it. The registers are those at `context`, the
/// address of a `ucontext_t`, if given; otherwise the thread's own.
///
/// # Errors
/// The human-readable reason for the failure.
pub(crate) fn capture(process: i32, thread: i32, context: Option<u64>) -> Result<Stopped, String> {
    let traced = Traced::stop(process, thread)?;
    let maps = fs::read_to_string(format!("/proc/{process}/maps"))
        .map_err(|error| format!("/proc/{process}/maps: {error}"))?;
    let registers = match context {
        Some(context) => registers_at(thread, context)?,
        None => traced.registers()?,
    };
    let (ip, sp, registers) = unwinding(&registers);
    let bounds = stack(&maps, sp).ok_or_else(|| format!("its stack pointer {sp:#x} is in no memory"))?;
    let memory = read(thread, bounds.clone())?;
    drop(traced);
    Ok(Stopped { ip, registers, maps, memory, start: bounds.start })
}

/// Returns the part of the stack to copy: the mapped memory from the stack pointer on.
fn stack(maps: &str, sp: u64) -> Option<Range<u64>> {
    let range = |line: &str| {
        let mut words = line.split_whitespace();
        let (start, end) = words.next()?.split_once('-')?;
        let is_readable = words.next()?.starts_with('r');
        let bounds = u64::from_str_radix(start, 16).ok()?..u64::from_str_radix(end, 16).ok()?;
        is_readable.then_some(bounds)
    };
    let above = maps.lines().filter_map(range).find(|range| range.end > sp)?;
    let start = sp.max(above.start);
    (start - sp <= GUARD).then(|| start..above.end.min(start + STACK))
}

thread_local! {
    /// Threads that did not stop in time, or were killed while stopped. The former are resumed once
    /// they stop; the processes of the latter do not end before a wait for them.
    static LATE: RefCell<Vec<Traced>> = const { RefCell::new(Vec::new()) };
}

/// Detaches threads that could not be detached before. The capturing thread must call this
/// periodically.
pub(crate) fn release() {
    let late = LATE.take();
    // A thread that cannot be detached yet is added again by `drop`.
    late.into_iter().for_each(drop);
}

#[derive(Debug, PartialEq, Eq)]
enum Seen {
    Running,
    Stopped,
    Ended,
}

/// A traced thread, detached on drop.
#[derive(Debug)]
struct Traced {
    thread: i32,
    /// `true` for the main thread of a child of this process, for which other code waits.
    is_child: bool,
}

impl Traced {
    fn stop(process: i32, thread: i32) -> Result<Self, String> {
        ptrace(libc::PTRACE_SEIZE, thread, 0).map_err(|error| match error.raw_os_error() {
            Some(libc::EPERM) => format!(
                "the kernel does not permit tracing ({error}): another process traces it, \
                 /proc/sys/kernel/yama/ptrace_scope is above 1, or a container forbids ptrace (--cap-add SYS_PTRACE)"
            ),
            _ => format!("it cannot be stopped: {error}"),
        })?;
        let traced = Self {
            thread,
            is_child: thread == process && child::parent(process) == Some(std::process::id() as i32),
        };
        ptrace(libc::PTRACE_INTERRUPT, thread, 0)
            .map_err(|error| format!("it cannot be stopped: {error}"))?;
        let begun = Instant::now();
        loop {
            match traced.observe() {
                Seen::Stopped => return Ok(traced),
                Seen::Running if begun.elapsed() < STOP_TIMEOUT => std::thread::sleep(GLANCE),
                Seen::Running => {
                    return Err(format!("it does not stop: it has been in the kernel for {STOP_TIMEOUT:?}"));
                }
                Seen::Ended => return Err("it has ended".into()),
            }
        }
    }

    /// Returns whether the thread runs, has stopped, or has ended.
    fn observe(&self) -> Seen {
        let seen = self.wait(libc::WSTOPPED);
        // The supervisor itself waits for the end of its child.
        if seen != Seen::Running || self.is_child {
            return seen;
        }
        match self.wait(libc::WEXITED | libc::WNOWAIT) {
            Seen::Ended => without_real_time(|| self.wait(libc::WEXITED)),
            seen => seen,
        }
    }

    /// Checks for these state changes without blocking.
    #[expect(clippy::disallowed_methods, reason = "with WNOHANG the call does not block")]
    fn wait(&self, changes: libc::c_int) -> Seen {
        let mut change = MaybeUninit::<libc::siginfo_t>::zeroed();
        let flags = changes | libc::WNOHANG | libc::__WALL;
        // SAFETY: the pointer is valid for writes, and all-zero is a valid value of the type.
        let (result, change) = unsafe {
            let result = libc::waitid(libc::P_PID, self.thread.unsigned_abs(), change.as_mut_ptr(), flags);
            (result, change.assume_init())
        };
        // SAFETY: the kernel has filled the structure, or left the number 0.
        match (result, unsafe { change.si_pid() }, change.si_code) {
            (0, 0, _) => Seen::Running,
            (0, _, libc::CLD_STOPPED | libc::CLD_TRAPPED) => Seen::Stopped,
            // Another thread has waited for it, or it is no longer traced.
            _ => Seen::Ended,
        }
    }

    fn registers(&self) -> Result<libc::user_regs_struct, String> {
        let mut registers = MaybeUninit::<libc::user_regs_struct>::zeroed();
        let mut place =
            libc::iovec { iov_base: registers.as_mut_ptr().cast(), iov_len: size_of_val(&registers) };
        // SAFETY: the kernel writes at most that many bytes there.
        let done = unsafe {
            libc::ptrace(libc::PTRACE_GETREGSET, self.thread, libc::NT_PRSTATUS as usize, &raw mut place)
        };
        if done < 0 {
            return Err(format!("its registers: {}", Error::last_os_error()));
        }
        // SAFETY: integers, for which zeros are valid, too.
        Ok(unsafe { registers.assume_init() })
    }
}

impl Drop for Traced {
    fn drop(&mut self) {
        // Fails if it is not stopped: the stop timed out, or it was killed.
        if ptrace(libc::PTRACE_DETACH, self.thread, 0).is_ok() {
            return;
        }
        let is_late = match self.observe() {
            Seen::Running => true,
            Seen::Stopped => ptrace(libc::PTRACE_DETACH, self.thread, 0).is_err(),
            Seen::Ended => false,
        };
        if is_late {
            let again = Self { thread: self.thread, is_child: self.is_child };
            // Fails only while this thread ends, which ends its tracing.
            let _ = LATE.try_with(|late| late.borrow_mut().push(again));
        }
    }
}

fn ptrace(request: libc::c_uint, thread: i32, data: usize) -> Result<(), Error> {
    // SAFETY: none of the requests made here reads or writes memory of this process.
    match unsafe { libc::ptrace(request, thread, 0_usize, data) } {
        -1 => Err(Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Copies memory of the thread's process.
fn read(thread: i32, range: Range<u64>) -> Result<Vec<u8>, String> {
    let mut bytes = vec![0_u8; usize::try_from(range.end - range.start).unwrap_or(0)];
    let mut local = [IoSliceMut::new(&mut bytes)];
    let remote = libc::iovec {
        iov_base: std::ptr::with_exposed_provenance_mut(range.start as usize),
        iov_len: (range.end - range.start) as usize,
    };
    // SAFETY: an `IoSliceMut` has the layout of an `iovec`, and the bytes are writable. The other
    // range belongs to another process, and the kernel checks it.
    let count = unsafe { libc::process_vm_readv(thread, local.as_mut_ptr().cast(), 1, &remote, 1, 0) };
    let count = usize::try_from(count).map_err(|_| format!("its memory: {}", Error::last_os_error()))?;
    bytes.truncate(count);
    Ok(bytes)
}

/// Returns the registers that a signal handler was given.
fn registers_at(thread: i32, context: u64) -> Result<libc::user_regs_struct, String> {
    let end =
        context.checked_add(size_of::<libc::ucontext_t>() as u64).ok_or("there are no registers there")?;
    let bytes = read(thread, context..end)?;
    if bytes.len() < size_of::<libc::ucontext_t>() {
        return Err("its registers are not at the given address".into());
    }
    // SAFETY: the buffer has that many bytes, and all values are valid: integers, and pointers that
    // are not followed.
    let context = unsafe { bytes.as_ptr().cast::<libc::ucontext_t>().read_unaligned() };
    // SAFETY: integers, for which zeros are valid.
    let mut registers: libc::user_regs_struct = unsafe { std::mem::zeroed() };
    fill(&mut registers, &context.uc_mcontext);
    Ok(registers)
}

#[cfg(target_arch = "x86_64")]
fn fill(registers: &mut libc::user_regs_struct, context: &libc::mcontext_t) {
    let general = |register: i32| context.gregs[register as usize] as u64;
    registers.rip = general(libc::REG_RIP);
    registers.rsp = general(libc::REG_RSP);
    registers.rbp = general(libc::REG_RBP);
}

#[cfg(target_arch = "aarch64")]
fn fill(registers: &mut libc::user_regs_struct, context: &libc::mcontext_t) {
    (registers.pc, registers.sp) = (context.pc, context.sp);
    registers.regs = context.regs;
}

/// Returns the instruction pointer, the stack pointer, and the registers that unwinding starts
/// with.
#[cfg(target_arch = "x86_64")]
fn unwinding(registers: &libc::user_regs_struct) -> (u64, u64, UnwindRegsNative) {
    let (ip, sp) = (registers.rip, registers.rsp);
    (ip, sp, UnwindRegsNative::new(ip, sp, registers.rbp))
}

#[cfg(target_arch = "aarch64")]
fn unwinding(registers: &libc::user_regs_struct) -> (u64, u64, UnwindRegsNative) {
    let (ip, sp) = (registers.pc, registers.sp);
    (ip, sp, UnwindRegsNative::new(registers.regs[30], sp, registers.regs[29]))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAPS: &str = "1000-2000 r-xp 00000000 00:00 0 /bin/app\n\
                        8000-9000 ---p 00000000 00:00 0\n\
                        9000-b000 rw-p 00000000 00:00 0\n\
                        nonsense\n";

    #[test]
    fn stack_is_mapping_above_its_pointer() {
        assert_eq!(stack(MAPS, 0x9f00), Some(0x9f00..0xb000));
        // In the guard page of an overflowed stack.
        assert_eq!(stack(MAPS, 0x8ff0), Some(0x9000..0xb000));
        assert_eq!(stack(MAPS, 0xb000), None);
        assert_eq!(stack("9000000-a000000 rw-p", 0), None);
    }
}
