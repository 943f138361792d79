//! The end of a program after an error: panics and faults.
//!
//! Both print the error and the backtrace to the console and end the program. This module takes no
//! lock, does not allocate, and relies on nothing that the program may have broken, except the page
//! tables.

use core::panic::PanicInfo;
use core::sync::atomic::{AtomicBool, Ordering};

use crate::end::PANICKED;
use crate::layout::{self, Stack};
use crate::{app, arch, exit, println};

/// Maximum number of frames of a backtrace, to bound the time of a report.
const MAX_FRAMES: usize = 10_000;

/// The program is ending. A further error during the end is not reported by the same code again.
static ENDING: AtomicBool = AtomicBool::new(false);

#[panic_handler]
fn panic(info: &PanicInfo<'_>) -> ! {
    start_ending();
    println!("{info}");
    print_level();
    println!("  return addresses:");
    print_frames(arch::frame_pointer());
    exit(PANICKED)
}

/// Reports a fault and ends the program.
pub(crate) fn fault(registers: &arch::Registers) -> ! {
    start_ending();
    let cause = registers.cause();
    match registers.fault_address().and_then(layout::guard) {
        Some((core, Stack::Main)) => {
            let size = layout::stack_size() / 1024;
            println!("punctual: the stack of core {core} ({size} KiB) has overflowed");
        }
        _ if registers.fault_address().is_some_and(is_guard_of_thread) => {
            println!("punctual: the stack of a thread has overflowed");
        }
        _ => println!("punctual: {cause}"),
    }
    print_level();
    if let Some(address) = registers.fault_address() {
        println!("  accessing {address:#x}");
    }
    println!("  registers:{registers}");
    println!("  return addresses:");
    println!("    {:#010x}", registers.program_counter());
    print_frames(registers.frame_pointer());
    exit(PANICKED)
}

/// Prints the level at which the core runs its app, if it runs one.
fn print_level() {
    if let Some(level) = app::level() {
        println!("  on core {}, at level {level}", arch::core());
    }
}

/// Returns whether an address is in a page that the program has
/// [forbidden](crate::memory::GuardPage::forbid).
fn is_guard_of_thread(address: usize) -> bool {
    address >= layout::stacks_end() && arch::mmu::is_forbidden(address)
}

/// Masks interrupts, and ends the program at once if it is already ending.
fn start_ending() {
    arch::mask_interrupts();
    if ENDING.swap(true, Ordering::Relaxed) {
        println!("punctual: and another fault or panic while reporting that");
        exit(PANICKED);
    }
    // The other cores must stop, too.
    crate::cores::ring_all();
}

/// Returns whether the program ends by a panic or a fault.
pub(crate) fn is_ending() -> bool {
    ENDING.load(Ordering::Relaxed)
}

/// Prints the return addresses from a frame on outwards, until one is invalid. Consecutive
/// repetitions are printed once, with their number.
fn print_frames(mut frame: usize) {
    // Stacks of threads are statics, which lie above.
    let stacks = layout::stacks_start()..layout::program_end();
    let (mut last, mut repeated) = (0, 0);
    for _ in 0..MAX_FRAMES {
        let record = frame..frame.saturating_add(2 * size_of::<usize>());
        let readable = stacks.start <= record.start && record.end <= stacks.end;
        if !readable || !frame.is_multiple_of(align_of::<usize>()) || arch::mmu::is_forbidden(frame) {
            break;
        }
        // SAFETY: the address is aligned and in a stack, not in a guard page; the memory is only
        // read.
        let [outer, back] = unsafe { (frame as *const [usize; 2]).read_volatile() };
        if !layout::is_code(back) {
            break;
        }
        if back == last {
            repeated += 1;
        } else {
            print_repeated(repeated);
            println!("    {back:#010x}");
            (last, repeated) = (back, 0);
        }
        // Newer frames have lower addresses, including those of interrupts.
        if outer <= frame {
            break;
        }
        frame = outer;
    }
    print_repeated(repeated);
}

fn print_repeated(times: usize) {
    if times > 0 {
        println!("    ... and again, {times} times");
    }
}
