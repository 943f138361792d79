//! Parameters of `init` after its context become parameters of `run`, and the user writes `main`.
//!
//! The jobs of `step` were released by `init` in this order, and run in it.

use punctual::{Config, StartError};

fn main() -> Result<(), StartError> {
    let place = String::from("the west gate");
    let report = app::run(Config::from_env(), &place, 2)?;
    println!("{} after {} jobs", report.outcome, report.tasks[0].jobs);
    Ok(())
}

#[punctual::app]
mod app {
    #[shared]
    struct Shared {}

    #[local]
    struct Local {
        place: String,
        left: u32,
    }

    #[init]
    fn init(_: init::Context, place: &str, steps: u32) -> (Shared, Local) {
        for n in 1..=steps {
            step::spawn(n).expect("the capacity is 4");
        }
        (Shared {}, Local { place: place.to_owned(), left: steps })
    }

    #[task(capacity = 4, local = [place, left])]
    fn step(cx: step::Context, n: u32) {
        println!("step {n} at {}", cx.local.place);
        *cx.local.left -= 1;
        if *cx.local.left == 0 {
            punctual::shutdown();
        }
    }
}
