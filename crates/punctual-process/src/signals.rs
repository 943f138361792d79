//! Signal dispositions and masks, which a process inherits from its parent.
//!
//! A signal that the parent ignores stays ignored across `exec`: `nohup` ignores SIGHUP, a shell
//! ignores SIGINT and SIGQUIT for a background job of a script, and some CI runners ignore both.

use std::io;

/// Signals that the kernel sends to a thread for its own instruction. If they are blocked, the
/// process ends without a call of their handler.
pub const SYNCHRONOUS: [i32; 5] = [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE, libc::SIGSYS];

/// Highest signal number.
const LAST_SIGNAL: i32 = 64;

/// The disposition of a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disposition {
    /// The default action.
    Default,
    /// The signal is ignored.
    Ignored,
    /// A function handles it.
    Handled,
}

/// Returns the disposition of `signal`.
///
/// # Errors
/// The signal does not exist.
pub fn disposition(signal: i32) -> io::Result<Disposition> {
    let mut action = std::mem::MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: nothing is set, and `action` is valid for writes; all-zero is a valid value.
    let action = unsafe {
        match libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr()) {
            0 => action.assume_init(),
            _ => return Err(io::Error::last_os_error()),
        }
    };
    Ok(match action.sa_sigaction {
        libc::SIG_DFL => Disposition::Default,
        libc::SIG_IGN => Disposition::Ignored,
        _ => Disposition::Handled,
    })
}

/// Returns the `signals` that the calling thread blocks.
#[must_use]
pub fn blocked(signals: &[i32]) -> Vec<i32> {
    let mut mask = std::mem::MaybeUninit::<libc::sigset_t>::zeroed();
    // SAFETY: nothing is set, and `mask` is valid for writes; all-zero is a valid value.
    let mask = unsafe {
        libc::pthread_sigmask(libc::SIG_BLOCK, std::ptr::null(), mask.as_mut_ptr());
        mask.assume_init()
    };
    // SAFETY: `mask` is initialized.
    signals
        .iter()
        .copied()
        .filter(|&signal| unsafe { libc::sigismember(&raw const mask, signal) } == 1)
        .collect()
}

/// Unblocks `signals` in the calling thread.
pub fn unblock(signals: &[i32]) {
    change_mask(libc::SIG_UNBLOCK, signals);
}

/// Blocks `signals` in the calling thread.
pub fn block(signals: &[i32]) {
    change_mask(libc::SIG_BLOCK, signals);
}

fn change_mask(how: i32, signals: &[i32]) {
    let mut set = std::mem::MaybeUninit::<libc::sigset_t>::zeroed();
    // SAFETY: `set` is valid for writes and initialized by `sigemptyset`. Changing the mask cannot
    // fail, and invalid signal numbers are skipped.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        signals.iter().for_each(|&signal| _ = libc::sigaddset(set.as_mut_ptr(), signal));
        libc::pthread_sigmask(how, set.as_ptr(), std::ptr::null_mut());
    }
}

/// Gives every signal its default action, and empties the signal mask of the calling thread.
///
/// Only makes system calls, so a child may call it between `fork` and `exec`.
pub(crate) fn reset_all() {
    // By system call: the C library rejects the signals that it uses itself, which a parent may
    // ignore as well. All-zero is the default action in the kernel's structure, of at most 32
    // bytes, with a mask of 8.
    let default = [0_u64; 4];
    for signal in 1..=LAST_SIGNAL {
        // SAFETY: the kernel reads its structure from `default`. It rejects SIGKILL and SIGSTOP,
        // which always have their default action.
        unsafe {
            libc::syscall(
                libc::SYS_rt_sigaction,
                signal,
                default.as_ptr(),
                std::ptr::null_mut::<u64>(),
                8_usize,
            )
        };
    }
    // SAFETY: the set is initialized by `sigemptyset` before it is read.
    unsafe {
        let mut none = std::mem::MaybeUninit::<libc::sigset_t>::zeroed();
        libc::sigemptyset(none.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, none.as_ptr(), std::ptr::null_mut());
    }
}

/// Makes a write beyond `RLIMIT_FSIZE` fail with `EFBIG` instead of ending the process by SIGXFSZ,
/// unless the program handles that signal itself.
///
/// The signal gets an empty handler rather than being ignored, because children would inherit an
/// ignored signal.
///
/// # Errors
/// The kernel refuses the handler.
pub fn survive_file_size_limit() -> io::Result<()> {
    extern "C" fn nothing(_: libc::c_int) {}
    if disposition(libc::SIGXFSZ)? != Disposition::Default {
        return Ok(());
    }
    // SAFETY: all-zero is a valid value. The handler is empty, which is safe at any time and on any
    // stack.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = nothing as extern "C" fn(libc::c_int) as usize;
        action.sa_flags = libc::SA_RESTART | libc::SA_ONSTACK;
        match libc::sigaction(libc::SIGXFSZ, &raw const action, std::ptr::null_mut()) {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// Gives SIGCHLD its default action if the parent ignored it: while it is ignored, the kernel
/// discards the exit status of children, and every wait for one fails with `ECHILD`.
pub fn keep_exit_statuses() {
    if matches!(disposition(libc::SIGCHLD), Ok(Disposition::Ignored)) {
        // SAFETY: the default action needs no function.
        unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
    }
}

/// Returns the name of a signal, such as `SIGINT`, or its number.
#[must_use]
pub fn name(signal: i32) -> String {
    let known = match signal {
        libc::SIGHUP => "SIGHUP",
        libc::SIGINT => "SIGINT",
        libc::SIGQUIT => "SIGQUIT",
        libc::SIGABRT => "SIGABRT",
        libc::SIGTERM => "SIGTERM",
        libc::SIGKILL => "SIGKILL",
        libc::SIGCHLD => "SIGCHLD",
        libc::SIGPIPE => "SIGPIPE",
        libc::SIGXCPU => "SIGXCPU",
        libc::SIGXFSZ => "SIGXFSZ",
        libc::SIGSEGV => "SIGSEGV",
        libc::SIGBUS => "SIGBUS",
        libc::SIGILL => "SIGILL",
        libc::SIGFPE => "SIGFPE",
        libc::SIGSYS => "SIGSYS",
        _ => return format!("signal {signal}"),
    };
    known.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_dispositions() {
        assert_eq!(disposition(libc::SIGURG).unwrap(), Disposition::Default);
        // SAFETY: SIGURG is not sent to this process, so ignoring it has no effect.
        unsafe { libc::signal(libc::SIGURG, libc::SIG_IGN) };
        assert_eq!(disposition(libc::SIGURG).unwrap(), Disposition::Ignored);
        // SAFETY: as above.
        unsafe { libc::signal(libc::SIGURG, libc::SIG_DFL) };
        assert!(disposition(0).is_err());
    }

    #[test]
    fn unblocks_only_named_signals() {
        std::thread::spawn(|| {
            block(&[libc::SIGINT, libc::SIGTERM]);
            unblock(&[libc::SIGINT]);
            assert_eq!(blocked(&[libc::SIGINT, libc::SIGTERM]), [libc::SIGTERM]);
        })
        .join()
        .unwrap();
    }
}
