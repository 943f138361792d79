//! The lab by itself; `cargo xtask lab` is the same.

fn main() -> ! {
    std::process::exit(lab::run(std::env::args_os().skip(1)))
}
