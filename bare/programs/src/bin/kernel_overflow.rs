//! Overflows the stack of a thread of `punctual-kernel`. The guard page below the stack ends the
//! program.
//!
//! exit: 101
//! sample: one board per instruction set
#![no_std]
#![no_main]

use core::hint::black_box;

use punctual_bare::println;
use punctual_kernel_bare::Board;

punctual_bare::entry!(main);

static BELOW: punctual_kernel::Stack<Board, 8128> = punctual_kernel::Stack::new();
static STACK: punctual_kernel::Stack<Board, 8128> = punctual_kernel::Stack::new();

#[inline(never)]
fn descend(depth: u64) -> u64 {
    let frame = black_box([depth; 32]);
    if depth == 0 { 0 } else { descend(depth + 1) + black_box(frame)[31] }
}

fn main() -> ! {
    punctual_kernel_bare::init();
    BELOW.prepare().unwrap();
    punctual_kernel::Thread::spawn(4, &STACK, |()| println!("{}", descend(1)), ()).unwrap();
    punctual_kernel::Kernel::<Board>::run();
    punctual_bare::exit(0)
}
