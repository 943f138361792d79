//! Creating a POSIX thread with all attributes set, as a real-time program does; its creation is
//! measured.

use std::ffi::c_void;
use std::io::Error;
use std::marker::PhantomData;
use std::mem::MaybeUninit;

use super::check;

/// The stack of a created thread: the thread bodies need little, and little memory should be locked
/// and touched.
const STACK: usize = 128 * 1024;

/// Policy, priority, CPU and stack of threads to be created.
#[derive(Debug)]
pub(crate) struct Attributes(Box<MaybeUninit<libc::pthread_attr_t>>);

impl Attributes {
    /// Returns attributes for SCHED_FIFO at `priority` on `cpu`; without `fifo`, for ordinary
    /// threads on that CPU.
    pub(crate) fn new(cpu: usize, priority: i32, fifo: bool) -> Self {
        let mut attributes = Box::new(MaybeUninit::<libc::pthread_attr_t>::uninit());
        let at = attributes.as_mut_ptr();
        // SAFETY: all-zero is a valid `sched_param`, which has more members with musl than with
        // glibc.
        let mut parameters = unsafe { std::mem::zeroed::<libc::sched_param>() };
        parameters.sched_priority = priority;
        // SAFETY: `at` is valid for writes and is initialized by the first call before the others
        // use it; all-zero is an empty `cpu_set_t`, `CPU_SET` writes only within it for the CPUs
        // that a process can be allowed, and the arguments passed by pointer outlive the calls,
        // which copy them.
        unsafe {
            check(libc::pthread_attr_init(at));
            check(libc::pthread_attr_setstacksize(at, STACK));
            let mut set: libc::cpu_set_t = MaybeUninit::zeroed().assume_init();
            if cpu < libc::CPU_SETSIZE as usize {
                libc::CPU_SET(cpu, &mut set);
                check(libc::pthread_attr_setaffinity_np(at, size_of::<libc::cpu_set_t>(), &set));
            }
            if fifo {
                check(libc::pthread_attr_setinheritsched(at, libc::PTHREAD_EXPLICIT_SCHED));
                check(libc::pthread_attr_setschedpolicy(at, libc::SCHED_FIFO));
                check(libc::pthread_attr_setschedparam(at, &parameters));
            }
        }
        Self(attributes)
    }
}

impl Drop for Attributes {
    fn drop(&mut self) {
        // SAFETY: `new` initialized them.
        unsafe { libc::pthread_attr_destroy(self.0.as_mut_ptr()) };
    }
}

/// A created thread, joined when dropped.
#[derive(Debug)]
pub(crate) struct Thread<'a>(libc::pthread_t, PhantomData<&'a ()>);

impl<'a> Thread<'a> {
    /// Starts a thread that calls `body` and ends. A panic in `body` ends the process.
    ///
    /// # Errors
    /// Resources or privileges are insufficient, or the process may no longer use the CPU.
    ///
    /// # Safety
    ///
    /// The thread must be dropped, not forgotten: it uses `body` until it has been joined.
    #[inline(always)]
    pub(crate) unsafe fn create<F: Fn() + Sync>(attributes: &Attributes, body: &'a F) -> Result<Self, Error> {
        extern "C" fn call<F: Fn() + Sync>(body: *mut c_void) -> *mut c_void {
            // SAFETY: `create` passes a reference to an `F`, which lives until this thread has been
            // joined.
            let body = unsafe { &*body.cast::<F>() };
            body();
            std::ptr::null_mut()
        }

        let mut thread = MaybeUninit::uninit();
        let with: *const F = body;
        // SAFETY: the attributes are initialized, `thread` is valid for writes, and `body` lives
        // until the thread is joined, which the caller ensures by dropping the result within `'a`.
        let error = unsafe {
            let with = with.cast_mut().cast();
            libc::pthread_create(thread.as_mut_ptr(), attributes.0.as_ptr(), call::<F>, with)
        };
        match error {
            // SAFETY: a successful call has written the thread.
            0 => Ok(Self(unsafe { thread.assume_init() }, PhantomData)),
            error => Err(Error::from_raw_os_error(error)),
        }
    }
}

impl Drop for Thread<'_> {
    fn drop(&mut self) {
        // SAFETY: the thread was created joinable and is joined only here.
        unsafe { libc::pthread_join(self.0, std::ptr::null_mut()) };
    }
}
