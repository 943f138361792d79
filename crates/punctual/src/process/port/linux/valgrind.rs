//! Suppresses valgrind's reports for intended accesses, such as those below the stack pointer.
//!
//! A client request is a sequence of instructions without effect that valgrind recognizes;
//! `valgrind.h` defines it for each architecture. On a processor it takes about ten instructions.

/// `VG_USERREQ__CHANGE_ERR_DISABLEMENT`: adds the argument to the error-disablement count of the
/// calling thread.
const CHANGE_ERROR_DISABLEMENT: usize = 0x1801;

/// Calls `body`, whose errors valgrind does not report.
pub(super) fn without_reports<T>(body: impl FnOnce() -> T) -> T {
    request(&[CHANGE_ERROR_DISABLEMENT, 1, 0, 0, 0, 0]);
    let result = body();
    request(&[CHANGE_ERROR_DISABLEMENT, 1_usize.wrapping_neg(), 0, 0, 0, 0]);
    result
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
fn request(arguments: &[usize; 6]) {
    // SAFETY: the rotations add up to 128 bits, so `rdi` is unchanged, and the exchange is of a
    // register with itself. Valgrind reads the arguments and writes its answer to `rdx`.
    unsafe {
        std::arch::asm!(
            "rol rdi, 3",
            "rol rdi, 13",
            "rol rdi, 61",
            "rol rdi, 51",
            "xchg rbx, rbx",
            in("rax") arguments,
            inout("rdx") 0_usize => _,
            out("rdi") _,
            options(nostack),
        );
    }
}

#[cfg(all(target_arch = "aarch64", not(miri)))]
fn request(arguments: &[usize; 6]) {
    // SAFETY: the rotations add up to 128 bits, so `x12` is unchanged, and `x10` is copied to
    // itself. Valgrind reads the arguments and writes its answer to `x3`.
    unsafe {
        std::arch::asm!(
            "ror x12, x12, #3",
            "ror x12, x12, #13",
            "ror x12, x12, #51",
            "ror x12, x12, #61",
            "orr x10, x10, x10",
            in("x4") arguments,
            inout("x3") 0_usize => _,
            out("x12") _,
            options(nostack),
        );
    }
}

/// Other architectures, and Miri, do not support client requests here.
#[cfg(not(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri))))]
fn request(_: &[usize; 6]) {}
