//! The restartable sequences that change a [`BiasedWord`], see `rseq(2)` of librseq.
//!
//! Through a pointer in its record (`rseq_cs`) to a descriptor, a thread informs the kernel which
//! instructions are a sequence. When the kernel returns to the thread after it was preempted or
//! moved, or delivers a signal to it, and the thread is within the sequence, the thread continues
//! at the abort handler, which is preceded by the signature that the C library has registered
//! (`RSEQ_SIG`, 0x53053053 on x86-64). Only the last instruction of a sequence changes anything, so
//! an aborted sequence has done nothing.
//!
//! The descriptor is part of the program. [`store`] and [`locked`], which foreign threads run, too,
//! clear the pointer after the sequence, so that the kernel does not read it in a library that has
//! been unloaded. [`set_unless`] and [`clear`] leave it, and the thread [forgets](forget) it when
//! it leaves the app.

use std::arch::asm;
use std::sync::atomic::AtomicU32;

use punctual_core::{Clearing, Masks, Setting};

use super::BiasedWord;

/// Result of a sequence with a locked instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// The word has been changed.
    Done,
    /// The word does not have the expected value.
    Changed,
    /// The kernel has aborted it.
    Aborted,
    /// This is not the home CPU.
    Elsewhere,
}

/// Result of [`take_own`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Taken {
    Yes,
    No,
    /// The cell is an atomic, and jobs require no further checks.
    Plain,
}

/// The beginning of a sequence: announces it in the record, and checks that the word is biased to
/// this CPU; otherwise jumps to `{failed}`, or executes the given conditional jump. If the constant
/// `{job}` is 1, also checks that the flags are 0. `{t}` is free afterwards.
macro_rules! begin {
    () => {
        begin!("jne {failed}\n")
    };
    ($otherwise:literal) => {
        concat!(
            ".pushsection __rseq_cs, \"aw\"\n",
            ".balign 32\n",
            "2:\n",
            ".long 0, 0\n",
            ".quad 3f, 4f - 3f, 5f\n",
            ".popsection\n",
            "lea {t}, [rip + 2b]\n",
            "mov qword ptr fs:[{rseq} + 8], {t}\n",
            "3:\n",
            "mov {t:e}, dword ptr fs:[{rseq} + 4]\n",
            ".if {job}\n",
            "cmp {t}, qword ptr [{cell} + 8]\n",
            ".else\n",
            "cmp {t:e}, dword ptr [{cell} + 8]\n",
            ".endif\n",
            $otherwise,
        )
    };
}

/// The end of a sequence, after the instruction that changes the word, with its abort handler.
macro_rules! end {
    () => {
        concat!(
            "4:\n",
            ".pushsection __rseq_failure, \"ax\"\n",
            ".byte 0x0f, 0xb9, 0x3d\n",
            ".long 0x53053053\n",
            "5:\n",
            "jmp {failed}\n",
            ".popsection\n",
        )
    };
}

/// Separates the code behind a sequence from its end, without an instruction: the compiler does not
/// redirect a jump that the end of a sequence may take, and so would compare a result that is a
/// constant there.
#[inline(always)]
fn separate() {
    // SAFETY: there is no instruction.
    unsafe { asm!("", options(nomem, nostack, preserves_flags)) };
}

/// Changes the word from `from` to `to` by a plain store, if it is biased to this CPU; returns
/// `true` if it has changed the word.
///
/// # Safety
/// The C library has registered the record of this thread, if any, at `cell.rseq` from the thread
/// pointer, with the signature `RSEQ_SIG`.
#[inline(always)]
pub(super) unsafe fn store(cell: &BiasedWord, from: u64, to: u64) -> bool {
    let rseq = cell.rseq.load(super::Ordering::Relaxed);
    // SAFETY: by this function's contract, the record belongs to the calling thread, and `rseq_cs`
    // (8) to the code that is in a sequence. `cpu_id` (4) is negative in a record that the kernel
    // does not know, and so not the bias state of a biased word. The word is an atomic, which is
    // loaded and stored as a whole; `cell` lives longer. The stack is not used.
    unsafe {
        asm!(
            begin!(),
            "cmp qword ptr [{cell}], {from}",
            "jne {failed}",
            "mov qword ptr [{cell}], {to}",
            end!(),
            cell = in(reg) cell,
            rseq = in(reg) rseq,
            from = in(reg) from,
            to = in(reg) to,
            t = out(reg) _,
            job = const 0,
            failed = label {
                // SAFETY: by this function's contract.
                unsafe { forget(rseq) };
                return false;
            },
            options(nostack),
        );
        forget(rseq);
    }
    true
}

/// Changes the word from `from` to `to` by a locked instruction, if this is the home CPU.
///
/// # Safety
/// As for [`store`].
#[inline(never)]
pub(super) unsafe fn locked(cell: &BiasedWord, from: u64, to: u64) -> End {
    let (changed, end): (u8, u64);
    let rseq = cell.rseq.load(super::Ordering::Relaxed);
    // SAFETY: as in `store`.
    unsafe {
        asm!(
            ".pushsection __rseq_cs, \"aw\"",
            ".balign 32",
            "2:",
            ".long 0, 0",
            ".quad 3f, 4f - 3f, 5f",
            ".popsection",
            "lea {end}, [rip + 2b]",
            "mov qword ptr fs:[{rseq} + 8], {end}",
            "3:",
            "mov {end:e}, dword ptr [{cell} + 8]",
            "and {end:e}, {home}",
            "cmp {end:e}, dword ptr fs:[{rseq} + 4]",
            "mov {end:e}, 1",
            "jne 4f",
            "mov {end:e}, 0",
            "lock cmpxchg qword ptr [{cell}], {to}",
            "4:",
            "setne {changed}",
            "7:",
            "mov qword ptr fs:[{rseq} + 8], 0",
            ".pushsection __rseq_failure, \"ax\"",
            ".byte 0x0f, 0xb9, 0x3d",
            ".long 0x53053053",
            "5:",
            "mov {end:e}, 2",
            "jmp 7b",
            ".popsection",
            cell = in(reg) cell,
            rseq = in(reg) rseq,
            to = in(reg) to,
            home = const super::HOME,
            inout("rax") from => _,
            end = out(reg) end,
            changed = out(reg_byte) changed,
            options(nostack),
        );
    }
    match (end, changed) {
        (0, 0) => End::Done,
        (0, _) => End::Changed,
        (1, _) => End::Elsewhere,
        _ => End::Aborted,
    }
}

/// [`begin`] of a sequence that is followed by the path for an [atomic](plain). If the constant
/// `{first}` is 1 the cell is checked first: two instructions more for a biased word, and six fewer
/// for an atomic.
macro_rules! begin_or_plain {
    () => {
        concat!(
            ".if {first}\n",
            "cmp dword ptr [{cell} + 12], {unbiased}\n",
            "je 7f\n",
            ".endif\n",
            begin!(".if {first}\njne {failed}\n.else\njne 7f\n.endif\n"),
        )
    };
}

/// The path of [`set_unless`] and [`clear`] for a cell that is an atomic: the given instructions,
/// and a jump behind the sequence. The cell is checked here unless the constant `{first}` is 1.
macro_rules! plain {
    ($($instruction:literal),*) => {
        concat!(
            ".pushsection .text.unlikely, \"ax\", @progbits\n",
            "7:\n",
            ".ifeq {first}\n",
            ".if {job}\n",
            "cmp dword ptr [{cell} + 12], {unbiased}\n",
            "jne {failed}\n",
            ".else\n",
            "cmp dword ptr [{cell} + 8], 0\n",
            "jns {failed}\n",
            ".endif\n",
            ".endif\n",
            $($instruction, "\n",)*
            "jmp 8f\n",
            ".popsection\n",
            "8:\n",
        )
    };
}

/// Sets `BIT`, if no bit of `BLOCKERS` is set: by one plain instruction if the word is biased to
/// this CPU, and by a locked one if the cell is an atomic.
///
/// # Safety
/// A record of the calling thread is at `rseq` from the thread pointer, in the layout of the
/// kernel's. If the cell is not plain, it is that of [`store`].
#[inline(always)]
pub(super) unsafe fn set_unless<M: Masks>(cell: &BiasedWord, rseq: isize) -> Setting {
    const { assert!(M::IS_JOB || !M::IS_PLAIN_FIRST, "the flags are checked for jobs") };
    const { assert!(super::PLAIN == 1 << 31, "the sign of the bias state") };
    // SAFETY: as in `store`. A plain bias state does not equal any `cpu_id`. The word and the flags
    // are atomics, which are loaded as a whole; the locked instruction is that of an atomic's
    // compare-and-swap, and `PLAIN`, once set, remains set until the cell is reset.
    unsafe {
        asm!(
            begin_or_plain!(),
            "test dword ptr [{cell}], {low}",
            "jnz {failed}",
            ".if {high}",
            "test dword ptr [{cell} + 4], {high}",
            "jnz {failed}",
            ".endif",
            "or qword ptr [{cell}], {bit}",
            end!(),
            plain!(
                "mov rax, qword ptr [{cell}]",
                "test eax, {low}",
                "jnz {failed}",
                ".if {high}",
                "mov {t}, rax",
                "shr {t}, 32",
                "test {t:e}, {high}",
                "jnz {failed}",
                ".endif",
                // One instruction if the bit is a blocker, and so is not set.
                ".if {is_blocker}",
                "lea {t}, [rax + {bit}]",
                ".else",
                "mov {t}, rax",
                "or {t}, {bit}",
                ".endif",
                "lock cmpxchg qword ptr [{cell}], {t}",
                "jne {failed}",
                // Again: the swap may have found the change of a thread that has set the flag.
                ".if {job}",
                "cmp dword ptr [{cell} + 12], {unbiased}",
                "jne {flagged}",
                ".endif"
            ),
            cell = in(reg) cell,
            rseq = in(reg) rseq,
            t = out(reg) _,
            out("rax") _,
            job = const M::IS_JOB as u32,
            first = const M::IS_PLAIN_FIRST as u32,
            unbiased = const super::UNBIASED,
            low = const M::BLOCKERS as u32,
            high = const (M::BLOCKERS >> 32) as u32,
            bit = const M::BIT,
            is_blocker = const (M::BLOCKERS & M::BIT as u64 != 0) as u32,
            flagged = label { return Setting::Flagged },
            failed = label { return Setting::Refused },
            options(nostack),
        );
    }
    separate();
    Setting::Set
}

/// Clears `BIT`, as [`set_unless`] sets it, and tests the word against `WORK` afterwards.
///
/// # Safety
/// As for [`set_unless`].
#[inline(always)]
pub(super) unsafe fn clear<M: Masks>(cell: &BiasedWord, rseq: isize) -> Clearing {
    const { assert!(M::WORK.leading_ones() == M::WORK.count_ones(), "all bits from some bit on") };
    const { assert!(M::WORK & M::BIT as u64 == 0, "the bit is not work for itself") };
    // SAFETY: as in `set_unless`.
    unsafe {
        asm!(
            begin_or_plain!(),
            "and qword ptr [{cell}], {bits}",
            end!(),
            plain!("lock and qword ptr [{cell}], {bits}"),
            // The bits of a 32-bit operand are extended by its sign.
            ".if {low}",
            "test qword ptr [{cell}], {low}",
            ".else",
            "test dword ptr [{cell} + 4], {high}",
            ".endif",
            "jnz {found}",
            cell = in(reg) cell,
            rseq = in(reg) rseq,
            t = out(reg) _,
            job = const M::IS_JOB as u32,
            first = const M::IS_PLAIN_FIRST as u32,
            unbiased = const super::UNBIASED,
            bits = const !(M::BIT as i32),
            low = const if M::WORK.leading_ones() >= 33 { M::WORK as i32 } else { 0 },
            high = const (M::WORK >> 32) as u32,
            found = label { return Clearing::Work },
            failed = label { return Clearing::Refused },
            options(nostack),
        );
    }
    separate();
    Clearing::Idle
}

/// Replaces `from` in `number` with 0 by a plain store, if the word is biased to this CPU.
///
/// # Safety
/// As for [`set_unless`].
#[inline(always)]
pub(super) unsafe fn take(cell: &BiasedWord, rseq: isize, number: &AtomicU32, from: u32) -> bool {
    // SAFETY: as in `set_unless`. The number is an atomic, which is loaded and stored as a whole.
    unsafe {
        asm!(
            begin!(),
            "cmp dword ptr [{number}], {from:e}",
            "jne {failed}",
            "mov dword ptr [{number}], 0",
            end!(),
            cell = in(reg) cell,
            rseq = in(reg) rseq,
            number = in(reg) number,
            from = in(reg) from,
            t = out(reg) _,
            job = const 0,
            failed = label { return false },
            options(nostack),
        );
    }
    true
}

/// Replaces a positive `number` with 0 by a plain store, if the word is biased to this CPU and jobs
/// require no further checks.
///
/// # Safety
/// As for [`set_unless`].
// An atomic cell is recognized first, where this costs two instructions, and saves five.
#[inline(always)]
pub(super) unsafe fn take_own(cell: &BiasedWord, rseq: isize, number: &AtomicU32) -> Taken {
    // SAFETY: as in `take`.
    unsafe {
        asm!(
            "cmp dword ptr [{cell} + 12], {unbiased}",
            "je {plain}",
            begin!(),
            "cmp dword ptr [{number}], 0",
            "jle {failed}",
            "mov dword ptr [{number}], 0",
            end!(),
            cell = in(reg) cell,
            rseq = in(reg) rseq,
            number = in(reg) number,
            t = out(reg) _,
            job = const 1,
            unbiased = const super::UNBIASED,
            plain = label { return Taken::Plain },
            failed = label { return Taken::No },
            options(nostack),
        );
    }
    separate();
    Taken::Yes
}

/// Returns `true` if the cell is an atomic.
// The compiler would load the bias state into a register before it compares.
#[inline(always)]
pub(super) fn is_plain(cell: &BiasedWord) -> bool {
    const { assert!(super::PLAIN == 1 << 31, "the sign of the bias state") };
    // SAFETY: the bias state is an atomic, which is loaded as a whole. The stack is not used.
    unsafe {
        asm!(
            "cmp dword ptr [{cell} + 8], 0",
            "jns {biased}",
            cell = in(reg) cell,
            biased = label { return false },
            options(nostack, readonly),
        );
    }
    true
}

/// Clears the pointer to the descriptor of the calling thread's last sequence.
///
/// # Safety
/// A record of the calling thread is at `rseq` from the thread pointer.
#[inline(always)]
pub(super) unsafe fn forget(rseq: isize) {
    // SAFETY: by this function's contract. `rseq_cs` (8) belongs to the code that is in a sequence.
    unsafe { asm!("mov qword ptr fs:[{} + 8], 0", in(reg) rseq, options(nostack, preserves_flags)) };
}

/// Returns the offset of an address from the calling thread's thread pointer.
pub(super) fn offset_of(address: usize) -> isize {
    let thread: usize;
    // SAFETY: on x86-64 the thread pointer points to a word that holds the thread pointer.
    unsafe { asm!("mov {}, fs:[0]", out(reg) thread, options(nostack, readonly, preserves_flags)) };
    address.wrapping_sub(thread) as isize
}
