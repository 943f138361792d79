//! The stacks of threads: touched before the first job, measured after the last, with a message on
//! overflow.
//!
//! A thread fills its stack with a pattern before it runs jobs, which makes all of it resident
//! whether or not memory is locked. The end of the pattern shows the peak usage.
//!
//! Below the stack is a guard page. Touching it raises SIGSEGV, handled on an alternate stack. This
//! handler names the task whose stack has overflowed, and then calls the previous handler. Rust's
//! own names the thread and aborts.

use std::cell::Cell;
use std::io;
use std::mem::MaybeUninit;
use std::sync::OnceLock;

use super::{fatal_signal, valgrind};

/// Contents of an untouched word.
const PATTERN: usize = 0xa5a5_a5a5_5a5a_5a5a_u64 as usize;
/// Words that are written or compared together: without optimization, a loop over single words
/// takes longer than the rest of an app's start. Much smaller than [`MARGIN`].
type Block = [usize; 16];
/// Space below the frame that fills the stack: more than that frame and its callees use.
const MARGIN: usize = 4096;
/// Size of the handler's stack. The kernel's frame may take 12 KiB (`AT_MINSIGSTKSZ`).
const ALTERNATE: usize = 64 * 1024;

/// The stack of one thread.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// The guard page, or its would-be location.
    guard: (usize, usize),
    /// The lowest usable address, and the end.
    low: usize,
    high: usize,
}

impl Bounds {
    /// Returns the calling thread's stack; `None` if the system does not report it.
    pub(crate) fn of_this_thread() -> Option<Self> {
        let mut attr = MaybeUninit::<libc::pthread_attr_t>::uninit();
        let (mut start, mut size, mut guard) = (std::ptr::null_mut(), 0, 0);
        // SAFETY: on success the call fills `attr`, which is then read and destroyed once.
        unsafe {
            if libc::pthread_getattr_np(libc::pthread_self(), attr.as_mut_ptr()) != 0 {
                return None;
            }
            let read = libc::pthread_attr_getstack(attr.as_ptr(), &mut start, &mut size) == 0
                && libc::pthread_attr_getguardsize(attr.as_ptr(), &mut guard) == 0;
            libc::pthread_attr_destroy(attr.as_mut_ptr());
            if !read {
                return None;
            }
        }
        let start = start.addr();
        // The main thread has no guard page; the kernel limits the growth of its stack at this
        // address.
        let page = guard.max(4096);
        // Old versions of glibc count the guard page as part of the stack. With newer ones, one
        // page is left out.
        Some(Self {
            guard: (start.saturating_sub(page), start + page),
            low: start + page,
            high: start + size,
        })
    }

    pub(crate) fn size(&self) -> usize {
        self.high - self.low
    }

    /// Fills the unused part of the calling thread's stack, which this must be.
    #[inline(never)]
    pub(crate) fn fill(&self) {
        let here = 0_u8;
        let end = std::ptr::from_ref(&here).addr().saturating_sub(MARGIN);
        // Under instrumentation locals may be elsewhere, and do not show where the frames end.
        if !(self.low..self.high).contains(&end) {
            return;
        }
        for block in self.blocks(end) {
            // SAFETY: the block is in this thread's stack, above the guard page and well below
            // every frame in use, so that it belongs to no object.
            unsafe { std::ptr::with_exposed_provenance_mut::<Block>(block).write_volatile([PATTERN; 16]) };
        }
    }

    /// Returns the addresses of the blocks below `end`.
    fn blocks(&self, end: usize) -> impl Iterator<Item = usize> {
        let low = self.low.next_multiple_of(size_of::<usize>());
        (low..=end.saturating_sub(size_of::<Block>())).step_by(size_of::<Block>())
    }

    /// Returns the peak usage since it was [filled](Self::fill), in bytes. Called by the thread
    /// itself.
    #[inline(never)]
    pub(crate) fn used(&self) -> usize {
        let touched_at = |block: usize| {
            // SAFETY: the block is in this thread's stack, which is readable above the guard page.
            let words = unsafe { std::ptr::with_exposed_provenance::<Block>(block).read_volatile() };
            let is_touched = words != [PATTERN; 16];
            is_touched.then(|| block + untouched(&words) * size_of::<usize>())
        };
        // Values left below the stack pointer by earlier calls are undefined, which valgrind
        // reports.
        let deepest = valgrind::without_reports(|| self.blocks(self.high).find_map(touched_at));
        deepest.map_or(0, |deepest| self.high - deepest)
    }
}

/// Returns the number of untouched words at the low end of a block.
fn untouched(words: &Block) -> usize {
    words.iter().take_while(|word| **word == PATTERN).count()
}

thread_local! {
    static STACK: Cell<Option<(Bounds, Explain)>> = const { Cell::new(None) };
}

/// Prints the owner of an overflowed stack. Called in a signal handler: it neither allocates nor
/// takes a lock.
pub(crate) type Explain = fn(Bounds);

/// Explains an overflow of the calling thread's stack while it exists.
#[derive(Debug)]
pub(crate) struct Watched {
    before: Option<(Bounds, Explain)>,
    /// The memory of the alternate stack, and the previous one.
    alternate: Option<(Box<[u8]>, libc::stack_t)>,
}

impl Watched {
    /// Begins to watch `stack`, that of the calling thread.
    pub(crate) fn begin(stack: Bounds, explain: Explain) -> io::Result<Self> {
        install()?;
        let mut memory = vec![0_u8; ALTERNATE].into_boxed_slice();
        let new = libc::stack_t { ss_sp: memory.as_mut_ptr().cast(), ss_flags: 0, ss_size: memory.len() };
        let mut before = MaybeUninit::<libc::stack_t>::uninit();
        // SAFETY: the memory lives until `drop` has removed the alternate stack again, on this
        // thread.
        let alternate = match unsafe { libc::sigaltstack(&new, before.as_mut_ptr()) } {
            // SAFETY: the call has filled it.
            0 => Some((memory, unsafe { before.assume_init() })),
            _ => return Err(io::Error::last_os_error()),
        };
        Ok(Self { before: STACK.replace(Some((stack, explain))), alternate })
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        STACK.set(self.before);
        if let Some((memory, before)) = self.alternate.take() {
            // SAFETY: restores the previous stack; it belongs to this thread, which this type does
            // not leave.
            if unsafe { libc::sigaltstack(&before, std::ptr::null_mut()) } != 0 {
                std::mem::forget(memory);
            }
        }
    }
}

/// The previous actions of the two signals.
static BEFORE: OnceLock<[libc::sigaction; 2]> = OnceLock::new();
const SIGNALS: [libc::c_int; 2] = [libc::SIGSEGV, libc::SIGBUS];

/// Installs the handler, once per process.
fn install() -> io::Result<()> {
    static INSTALLED: OnceLock<i32> = OnceLock::new();
    let error = INSTALLED.get_or_init(|| {
        let mut before = [const { MaybeUninit::<libc::sigaction>::zeroed() }; 2];
        for (signal, before) in SIGNALS.into_iter().zip(&mut before) {
            // SAFETY: nothing is changed, and the destination is valid.
            if unsafe { libc::sigaction(signal, std::ptr::null(), before.as_mut_ptr()) } != 0 {
                return io::Error::last_os_error().raw_os_error().unwrap_or(libc::EINVAL);
            }
        }
        // SAFETY: the calls have filled them.
        let _ = BEFORE.set(before.map(|before| unsafe { before.assume_init() }));
        for signal in SIGNALS {
            // SAFETY: all-zero is a valid value: no flags, an empty mask.
            let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
            action.sa_sigaction = handle as *const () as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
            // SAFETY: the handler is async-signal-safe, and passes signals that are not its own to
            // the previous one.
            if unsafe { libc::sigaction(signal, &action, std::ptr::null_mut()) } != 0 {
                return io::Error::last_os_error().raw_os_error().unwrap_or(libc::EINVAL);
            }
        }
        0
    });
    if *error == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(*error)) }
}

/// On the alternate stack of the thread that the signal is for.
extern "C" fn handle(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    fatal_signal::report(signal, info, context);
    // SAFETY: the kernel passes a valid pointer, and these signals have an address.
    let address = unsafe { (*info).si_addr() }.addr();
    let hit = |(stack, _): &(Bounds, Explain)| (stack.guard.0..stack.guard.1).contains(&address);
    if let Some((stack, explain)) = STACK.get().filter(hit) {
        explain(stack);
    }
    let before = BEFORE.get().map(|both| both[usize::from(signal != SIGNALS[0])]);
    match before {
        Some(before) if before.sa_sigaction != libc::SIG_DFL && before.sa_sigaction != libc::SIG_IGN => {
            let handler = before.sa_sigaction;
            if before.sa_flags & libc::SA_SIGINFO != 0 {
                // SAFETY: it was installed as a handler of three arguments, and gets the original
                // ones.
                let handler = unsafe {
                    std::mem::transmute::<
                        usize,
                        extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void),
                    >(handler)
                };
                handler(signal, info, context);
            } else {
                // SAFETY: it was installed as a handler of one argument.
                let handler = unsafe { std::mem::transmute::<usize, extern "C" fn(libc::c_int)>(handler) };
                handler(signal);
            }
        }
        // The instruction is repeated and ends the process: a fault cannot be ignored.
        _ => {
            // SAFETY: as in `install`; `signal` may be called in a handler.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[inline(never)]
    fn use_up(bytes: usize) {
        let block = [1_u8; 4096];
        std::hint::black_box(&block);
        if bytes > block.len() {
            use_up(bytes - block.len());
        }
        std::hint::black_box(&block);
    }

    #[test]
    fn detects_used_memory() {
        let measure = || {
            let stack = Bounds::of_this_thread().expect("the system tells");
            stack.fill();
            let before = stack.used();
            use_up(200 * 1024);
            (stack.size(), before, stack.used())
        };
        let (size, before, used) =
            std::thread::Builder::new().stack_size(1024 * 1024).spawn(measure).unwrap().join().unwrap();
        // More if the memory was previously the stack of a thread that has ended.
        assert!(size >= 900 * 1024, "{size}");
        assert!(before < 64 * 1024, "{before}");
        assert!((200 * 1024..600 * 1024).contains(&used), "{used}");
    }

    #[test]
    fn restores_alternate_stack() {
        std::thread::spawn(|| {
            let alternate = || {
                let mut now = MaybeUninit::<libc::stack_t>::zeroed();
                // SAFETY: nothing is changed, and the destination is valid.
                unsafe {
                    assert_eq!(libc::sigaltstack(std::ptr::null(), now.as_mut_ptr()), 0);
                    now.assume_init().ss_sp
                }
            };
            let before = alternate();
            let watched =
                Watched::begin(Bounds::of_this_thread().expect("the system tells"), |_| {}).unwrap();
            assert_ne!(alternate(), before);
            drop(watched);
            assert_eq!(alternate(), before);
        })
        .join()
        .unwrap();
    }
}
