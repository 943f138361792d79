//! The cost of switches inside a process, compared with those of libc and of Linux, in alternating
//! windows, by the CPU time of this process: `cargo run --release -p punctual-kernel --features
//! linux --example switches`
//!
//! Then, in elapsed time, the cost of a preemption to the preempted thread, for each source of
//! interrupts and for threads of Linux.
//!
//! Voluntary: two threads of the kernel yield to each other; `swapcontext` between two contexts;
//! two threads of Linux on one CPU that wake each other by futexes. Preempting: from a raised
//! signal until the thread that it makes ready runs, and back.

#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod linux;

fn main() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    linux::main();
    #[cfg(not(all(target_os = "linux", target_env = "gnu")))]
    println!("needs Linux, and libc's swapcontext");
}
