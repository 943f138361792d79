//! Stacks of threads, and the names of functions; without the feature `guard` there are none.

/// Passes the return addresses of the calling thread's stack to `note`, innermost first, while it
/// returns `true`. Neither allocates nor locks.
#[cfg_attr(not(feature = "guard"), allow(unused_variables, reason = "no stack can be walked"))]
pub(super) fn walk(note: &mut dyn FnMut(usize) -> bool) {
    // SAFETY: only the resolution of names needs synchronization; walking the stack accesses only
    // this thread's.
    #[cfg(feature = "guard")]
    unsafe {
        backtrace::trace_unsynchronized(|frame| note(frame.ip().addr()));
    }
}

/// Passes the name, file and line of the function at an address to `found`, preceded by those that
/// are inlined there.
#[cfg_attr(not(feature = "guard"), allow(unused_variables, reason = "no name is known"))]
pub(super) fn resolve(ip: usize, found: &mut dyn FnMut(String, String, Option<u32>)) {
    #[cfg(feature = "guard")]
    backtrace::resolve(ip as *mut std::ffi::c_void, |symbol| {
        if let Some(name) = symbol.name() {
            let file = symbol.filename().map_or_else(String::new, |file| file.display().to_string());
            // Without the hash.
            found(format!("{name:#}"), file, symbol.lineno());
        }
    });
}
