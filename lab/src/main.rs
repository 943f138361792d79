//! The lab as a separate program; `cargo xtask lab` is the same.

fn main() -> ! {
    std::process::exit(lab::run(std::env::args_os().skip(1)))
}
