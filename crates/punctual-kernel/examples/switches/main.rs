//! What switches cost inside a process, beside those of libc and of Linux, in windows that take turns, by
//! the time that the processor spends on this process:
//! `cargo run --release -p punctual-kernel --features linux --example switches`
//!
//! Then, in time that passes, what a preemption takes from who is preempted, for each source of interrupts and for threads of Linux.
//!
//! Voluntary: two threads of the kernel yield to each other; `swapcontext` between two contexts; two threads of Linux on one CPU
//! that wake each other by futexes. Preempting: from a raised signal until the thread that it makes ready runs, and back.

#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod linux;

fn main() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    linux::main();
    #[cfg(not(all(target_os = "linux", target_env = "gnu")))]
    println!("needs Linux, and libc's swapcontext");
}
