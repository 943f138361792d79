//! Tasks and resources may have the same names.
//!
//! `sensor` is a task and a local of it, `watch` is a task and a shared resource; the context
//! determines which is meant. Both tasks are of one level, so `watch` runs when `sensor` has ended.

#[punctual::app]
mod app {
    use punctual::prelude::*;

    #[shared]
    struct Shared {
        watch: u32,
    }

    #[local]
    struct Local {
        sensor: u32,
    }

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        sensor::spawn(1).unwrap();
        (Shared { watch: 20 }, Local { sensor: 300 })
    }

    #[task(shared = [watch], local = [sensor])]
    fn sensor(mut cx: sensor::Context, reading: u32) {
        cx.shared.watch.lock(|watch| *watch += reading + *cx.local.sensor);
        watch::spawn(reading).unwrap();
        println!("sensor {reading}");
    }

    #[task(shared = [watch], local = [offset: u32 = 4000])]
    fn watch(mut cx: watch::Context, reading: u32) {
        let watch = cx.shared.watch.lock(|watch| *watch + *cx.local.offset);
        println!("watch {reading} {watch}");
        punctual::shutdown();
    }
}
