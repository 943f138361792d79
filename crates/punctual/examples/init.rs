//! `init` runs once, before everything else, and returns the initial values of all resources.
//!
//! Nothing preempts it: a job that it spawns runs after it has returned, when the resources exist.
//! A local that `init` declares is `'static`, so a reference to it may be passed on.

#[punctual::app]
mod app {
    use punctual::prelude::*;

    #[shared]
    struct Shared {
        total: u32,
    }

    #[local]
    struct Local {
        samples: &'static mut [u32; 4],
    }

    #[init(local = [memory: [u32; 4] = [1, 2, 3, 4]])]
    fn init(cx: init::Context) -> (Shared, Local) {
        println!("init starts");
        let samples: &'static mut [u32; 4] = cx.local.memory;
        samples[0] = 10;
        sum::spawn().unwrap();
        println!("init ends");
        (Shared { total: 100 }, Local { samples })
    }

    #[task(shared = [total], local = [samples])]
    fn sum(mut cx: sum::Context) {
        let total = cx.shared.total.lock(|total| {
            *total += cx.local.samples.iter().sum::<u32>();
            *total
        });
        println!("total = {total}");
        punctual::shutdown();
    }
}
