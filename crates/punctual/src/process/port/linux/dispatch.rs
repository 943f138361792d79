//! Intercepts the system calls of one thread from within: Syscall User Dispatch, since Linux 5.11,
//! without privileges.
//!
//! At each system call of the thread, the kernel reads a byte of the thread, the [`selector`]. If
//! the byte requests it, the thread gets SIGSYS instead. The handler inspects the call, makes it
//! itself, and stores its result where the caller expects it. It returns by a system call too, from
//! an address that the kernel exempts.
//!
//! Threads and processes started by such a thread are not dispatched.

use std::cell::Cell;
use std::ffi::c_void;
use std::io;
use std::marker::PhantomData;
use std::sync::{Mutex, PoisonError};

use punctual_process::signals;
use punctual_sync::futex::selector::{self, Watch};

/// A system call that a thread is about to make.
pub(crate) struct Call {
    /// System call number.
    pub(crate) number: i64,
    pub(crate) arguments: [usize; 6],
    /// Return address.
    pub(crate) place: usize,
}

thread_local! {
    // Constant and without a destructor: a signal handler uses it.
    static LOOK: Cell<Option<fn(&Call)>> = const { Cell::new(None) };
}

const PR_SET_SYSCALL_USER_DISPATCH: libc::c_int = 59;
const OFF: libc::c_ulong = 0;
const ON: libc::c_ulong = 1;
/// `SYS_USER_DISPATCH`, the `si_code`.
const USER_DISPATCH: libc::c_int = 2;
/// Length of the instruction.
const SYSCALL: i64 = 2;

/// Dispatches system calls of the calling thread while the selector requests it, until dropped.
#[derive(Debug)]
pub(crate) struct Dispatched {
    before: Option<fn(&Call)>,
    /// Tied to the calling thread.
    _not_send: PhantomData<*mut ()>,
}

impl Dispatched {
    /// Passes the system calls that the thread makes while watched to `observer`, which must be
    /// async-signal-safe.
    pub(crate) fn begin(observer: fn(&Call)) -> io::Result<Self> {
        install()?;
        // A blocked SIGSYS would end the process.
        signals::unblock(&[libc::SIGSYS]);
        let before = LOOK.replace(Some(observer));
        if before.is_none() {
            let (start, length) = restorer();
            // SAFETY: the byte belongs to the thread, and lives as long as the thread.
            let set =
                unsafe { libc::prctl(PR_SET_SYSCALL_USER_DISPATCH, ON, start, length, selector::address()) };
            if set != 0 {
                LOOK.set(None);
                let error = io::Error::last_os_error();
                let what = "prctl(PR_SET_SYSCALL_USER_DISPATCH) is refused, which Linux has since 5.11 and a container may filter";
                return Err(io::Error::new(error.kind(), format!("{what}: {error}")));
            }
        }
        Ok(Self { before, _not_send: PhantomData })
    }
}

impl Drop for Dispatched {
    fn drop(&mut self) {
        LOOK.set(self.before);
        if self.before.is_none() {
            // The call cannot fail, and there would be no remedy: the thread is no longer watched.
            // SAFETY: it takes no pointers.
            unsafe { libc::prctl(PR_SET_SYSCALL_USER_DISPATCH, OFF, 0, 0, 0) };
        }
    }
}

// The kernel's return path from a handler. Unwinders identify a signal frame by the bytes of these
// two instructions and by the absence of other unwind information. The first byte must belong to no
// function either, because unwinders look up the address minus one.
std::arch::global_asm!(
    ".pushsection .text.punctual_guard, \"ax\", @progbits",
    ".weak punctual_guard_restorer",
    ".hidden punctual_guard_restorer",
    ".balign 16",
    "nop",
    "punctual_guard_restorer:",
    ".byte 0x48, 0xc7, 0xc0, 0x0f, 0x00, 0x00, 0x00", // mov rax, 15 (rt_sigreturn)
    ".byte 0x0f, 0x05",                               // syscall
    ".byte 0x0f, 0x0b",                               // ud2
    ".popsection",
);

/// Returns its address and length.
fn restorer() -> (usize, usize) {
    unsafe extern "C" {
        fn punctual_guard_restorer();
    }
    ((punctual_guard_restorer as *const ()).addr(), 11)
}

/// The kernel's `struct sigaction`. The C library's function does not accept a restorer.
#[repr(C)]
#[derive(Clone, Copy)]
struct Action {
    handler: usize,
    flags: libc::c_ulong,
    restorer: usize,
    mask: u64,
}

const SA_RESTORER: libc::c_ulong = 0x0400_0000;

fn action(new: Option<&Action>) -> io::Result<Action> {
    let mut before = Action { handler: 0, flags: 0, restorer: 0, mask: 0 };
    let new: *const Action = new.map_or(std::ptr::null(), |new| new);
    // SAFETY: both have the kernel's layout, whose mask has 8 bytes.
    let set = unsafe {
        libc::syscall(libc::SYS_rt_sigaction, libc::c_long::from(libc::SIGSYS), new, &raw mut before, 8_usize)
    };
    if set == 0 { Ok(before) } else { Err(io::Error::last_os_error()) }
}

/// Previous handler of SIGSYS, which seccomp filters can raise too. Written before there are
/// dispatched threads, or after the process has replaced our handler.
static mut BEFORE: Option<Action> = None;

/// Installs the SIGSYS handler, unless it is installed already.
fn install() -> io::Result<()> {
    static INSTALLING: Mutex<()> = Mutex::new(());
    let _one = INSTALLING.lock().unwrap_or_else(PoisonError::into_inner);
    let ours = handle as *const () as usize;
    let now = action(None)?;
    if now.handler == ours {
        return Ok(());
    }
    // SAFETY: only one thread at a time executes this, and the handler that reads it is not
    // installed.
    unsafe { BEFORE = Some(now) };
    let flags = (libc::SA_SIGINFO | libc::SA_RESTART) as libc::c_ulong | SA_RESTORER;
    action(Some(&Action { handler: ours, flags, restorer: restorer().0, mask: 0 }))?;
    Ok(())
}

/// Returns whether a call must be made outside the handler: because it returns twice or not at all,
/// or because it changes state that the handler's return restores, or whether the handler can
/// return.
fn is_called_by_spawner(number: i64) -> bool {
    matches!(
        number,
        libc::SYS_clone
            | libc::SYS_clone3
            | libc::SYS_fork
            | libc::SYS_vfork
            | libc::SYS_execve
            | libc::SYS_execveat
            | libc::SYS_exit
            | libc::SYS_exit_group
            | libc::SYS_rt_sigprocmask
            | libc::SYS_sigaltstack
            | libc::SYS_arch_prctl
            | libc::SYS_seccomp
    )
}

extern "C" fn handle(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // From here on this thread's calls reach the kernel.
    let watch = Watch::set(false);
    // SAFETY: the kernel passes both to a handler with SA_SIGINFO.
    let (code, registers) =
        unsafe { ((*info).si_code, &mut (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs) };
    let (Some(observer), USER_DISPATCH) = (LOOK.get(), code) else {
        drop(watch);
        return pass_on(signal, info, context);
    };
    // SAFETY: it belongs to the calling thread.
    let errno = unsafe { *libc::__errno_location() };
    let register = |register: libc::c_int| register as usize;
    let number = registers[register(libc::REG_RAX)];
    let arguments = [libc::REG_RDI, libc::REG_RSI, libc::REG_RDX, libc::REG_R10, libc::REG_R8, libc::REG_R9];
    let arguments = arguments.map(|argument| registers[register(argument)] as usize);
    let place = &mut registers[register(libc::REG_RIP)];
    if number == libc::SYS_rt_sigreturn {
        // The return of another handler that interrupted the job. It returns from our address, with
        // its own stack pointer.
        *place = restorer().0 as i64;
        return drop(watch);
    }
    observer(&Call { number, arguments, place: *place as usize });
    if is_called_by_spawner(number) {
        // Repeats the call with the same registers. The thread stays unwatched, because no code of
        // ours runs after the call.
        *place -= SYSCALL;
        std::mem::forget(watch);
    } else {
        // SAFETY: exactly the call that the thread was about to make.
        registers[register(libc::REG_RAX)] = unsafe { system_call(number, arguments) };
    }
    // SAFETY: as above. No system call follows before the return.
    unsafe { *libc::__errno_location() = errno };
}

/// # Safety
/// The requirements of the call.
unsafe fn system_call(number: i64, arguments: [usize; 6]) -> i64 {
    let result;
    // SAFETY: by this function's contract; the three registers that the kernel changes are declared
    // as outputs.
    unsafe {
        std::arch::asm!(
            "syscall",
            inlateout("rax") number => result,
            in("rdi") arguments[0],
            in("rsi") arguments[1],
            in("rdx") arguments[2],
            in("r10") arguments[3],
            in("r8") arguments[4],
            in("r9") arguments[5],
            out("rcx") _,
            out("r11") _,
            options(nostack),
        );
    }
    result
}

/// Passes a SIGSYS that is not from a dispatched call to the previous handler.
fn pass_on(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: written before this handler was installed.
    let before = unsafe { (&raw const BEFORE).read() };
    match before {
        Some(before) if before.handler != libc::SIG_DFL && before.handler != libc::SIG_IGN => {
            if before.flags & libc::SA_SIGINFO as libc::c_ulong != 0 {
                // SAFETY: it was installed with SA_SIGINFO, so it has this signature.
                let handler = unsafe {
                    std::mem::transmute::<usize, extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut c_void)>(
                        before.handler,
                    )
                };
                handler(signal, info, context);
            } else {
                // SAFETY: it was installed without SA_SIGINFO, so it has this signature.
                let handler =
                    unsafe { std::mem::transmute::<usize, extern "C" fn(libc::c_int)>(before.handler) };
                handler(signal);
            }
        }
        // The signal ends the process when this handler returns, as it would have without the
        // handler. SAFETY: both take no pointers, and are async-signal-safe.
        _ => unsafe {
            libc::signal(signal, libc::SIG_DFL);
            libc::raise(signal);
        },
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    thread_local! {
        static SEEN: Cell<(i64, usize)> = const { Cell::new((0, 0)) };
    }

    fn see(call: &Call) {
        SEEN.set((call.number, SEEN.get().1 + 1));
    }

    #[test]
    fn calls_are_seen_while_watched_and_have_their_results() {
        let Ok(dispatched) = Dispatched::begin(see) else {
            return test_skip::skip(test_skip::Need::System("system call dispatch"), "watched calls");
        };
        let process = std::process::id();
        assert_eq!(SEEN.get(), (0, 0));
        let watch = Watch::set(true);
        // SAFETY: the calls take no pointers; the second fails.
        let (pid, refused, errno) = unsafe { (libc::getpid(), libc::close(-1), *libc::__errno_location()) };
        selector::unwatched(std::process::id);
        drop(watch);
        assert_eq!(SEEN.get(), (libc::SYS_close, 2));
        assert_eq!((pid as u32, refused, errno), (process, -1, libc::EBADF));
        drop(dispatched);
        let _watch = Watch::set(true);
        assert_eq!((std::process::id(), SEEN.get().1), (process, 2));
    }

    #[test]
    fn end_of_other_handler_keeps_watch() {
        static HANDLED: AtomicU64 = AtomicU64::new(0);
        extern "C" fn count(_: libc::c_int) {
            HANDLED.fetch_add(1, Ordering::Relaxed);
        }
        let Ok(_dispatched) = Dispatched::begin(see) else {
            return test_skip::skip(test_skip::Need::System("system call dispatch"), "watched calls");
        };
        // SAFETY: the handler is async-signal-safe.
        unsafe { libc::signal(libc::SIGURG, count as *const () as usize) };
        // Not `raise`, which changes the signal mask with musl: this would end the watch. SAFETY:
        // the calls take no pointers.
        let (process, thread) = unsafe { (libc::getpid(), libc::gettid()) };
        let watch = Watch::set(true);
        // SAFETY: the calls take no pointers.
        unsafe {
            libc::syscall(libc::SYS_tgkill, process, thread, libc::SIGURG);
            let before = SEEN.get().1;
            libc::getppid();
            drop(watch);
            assert_eq!((SEEN.get(), HANDLED.load(Ordering::Relaxed)), ((libc::SYS_getppid, before + 1), 1));
        }
    }

    #[test]
    fn does_not_watch_threads_started_by_watched_one() {
        let Ok(_dispatched) = Dispatched::begin(see) else {
            return test_skip::skip(test_skip::Need::System("system call dispatch"), "watched calls");
        };
        let watch = Watch::set(true);
        let seen = std::thread::spawn(|| {
            // SAFETY: the call takes no pointers.
            unsafe { libc::getppid() };
            (selector::is_watched(), SEEN.get().1)
        });
        let seen = seen.join().expect("it does not panic");
        drop(watch);
        assert_eq!(seen, (false, 0));
    }
}
