//! Messages: how many copies the stack has of one, and the errors if there is no room for one.

use std::ffi::c_void;

use punctual::Config;

use crate::{privileges, process};

const SIZE: usize = 256 << 10;

/// Way in which the only job of level 1 passes on a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Passing {
    Nothing,
    Queued,
    Called,
    Timed,
    #[cfg(feature = "async")]
    Async,
}

#[punctual::app(main = false)]
mod app {
    use punctual::prelude::*;

    use super::{Passing, SIZE};

    #[shared]
    struct Shared {}

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context, passing: Passing) -> (Shared, Local) {
        spawner::spawn(passing).unwrap();
        (Shared {}, Local {})
    }

    #[task(priority = 1)]
    fn spawner(_: spawner::Context, passing: Passing) {
        match passing {
            Passing::Nothing => punctual::shutdown(),
            Passing::Queued => queues::spawn().unwrap(),
            Passing::Called => calls::spawn().unwrap(),
            Passing::Timed => arms::spawn().unwrap(),
            #[cfg(feature = "async")]
            Passing::Async => starts::spawn().unwrap(),
        }
    }

    // A task for each: the frame of a function has room for the messages of all its branches.
    #[task(priority = 1)]
    fn queues(_: queues::Context) {
        queued::spawn([1; SIZE]).ok().unwrap();
    }

    #[task(priority = 1)]
    fn calls(_: calls::Context) {
        called::spawn([1; SIZE]).ok().unwrap();
    }

    #[task(priority = 1)]
    fn arms(_: arms::Context) {
        queued::spawn_after(1.micros(), [1; SIZE]).ok().unwrap();
    }

    #[cfg(feature = "async")]
    #[task(priority = 1)]
    fn starts(_: starts::Context) {
        future::spawn([1; SIZE]).ok().unwrap();
    }

    #[task(priority = 1)]
    fn queued(_: queued::Context, message: [u8; SIZE]) {
        std::hint::black_box(&message);
        punctual::shutdown();
    }

    #[task(priority = 2)]
    fn called(_: called::Context, message: [u8; SIZE]) {
        std::hint::black_box(&message);
        punctual::shutdown();
    }

    #[cfg(feature = "async")]
    #[task(priority = 1)]
    async fn future(_: future::Context, message: [u8; SIZE]) {
        punctual::delay(1.micros()).await;
        std::hint::black_box(&message);
        punctual::shutdown();
    }
}

/// A job passes a message of 64 KiB to a job of a higher level.
#[punctual::app(main = false)]
mod scan {
    #[shared]
    struct Shared {}

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        low::spawn().unwrap();
        (Shared {}, Local {})
    }

    #[task(priority = 1)]
    fn low(_: low::Context) {
        high::spawn([1; 64 << 10]).ok().unwrap();
    }

    #[task(priority = 2)]
    fn high(_: high::Context, scan: [u8; 64 << 10]) {
        println!("SUM {}", scan.iter().map(|&value| u32::from(value)).sum::<u32>());
        punctual::shutdown();
    }
}

/// The errors of spawns for which there is no room.
#[punctual::app(main = false)]
mod full {
    use std::sync::mpsc::Sender;

    use punctual::prelude::*;

    #[shared]
    struct Shared {}

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context, errors: Sender<[String; 2]>) -> (Shared, Local) {
        let shown = |error: &dyn std::error::Error| [error.to_string(), format!("{error:?}")];
        work::spawn(1).unwrap();
        work::spawn_after(1.secs(), 2).unwrap();
        errors.send(shown(&work::spawn(3).unwrap_err())).unwrap();
        errors.send(shown(&work::spawn_after(1.secs(), 3).unwrap_err())).unwrap();
        #[cfg(feature = "async")]
        {
            waits::spawn("first").unwrap();
            errors.send(shown(&waits::spawn("second").unwrap_err())).unwrap();
        }
        (Shared {}, Local {})
    }

    #[task(priority = 1, capacity = 2)]
    fn work(_: work::Context, _: u8) {}

    #[cfg(feature = "async")]
    #[task(priority = 1)]
    async fn waits(_: waits::Context, _: &'static str) {}
}

/// Runs the app in virtual time, where all jobs are on the caller's stack; returns the number of
/// bytes of the stack that it used.
fn stack_used(passing: Passing) -> usize {
    const PATTERN: u64 = 0xA5A5_A5A5_A5A5_A5A5;

    extern "C" fn run(passing: *mut c_void) -> *mut c_void {
        // SAFETY: the pointer is to the passing, which outlives this thread.
        let passing = unsafe { *passing.cast::<Passing>() };
        app::run(Config::new().virtual_time(), passing).expect("the app starts");
        std::ptr::null_mut()
    }

    /// Aligned to pages.
    #[repr(C, align(4096))]
    #[derive(Clone, Copy)]
    struct Page([u64; 512]);

    let mut stack = vec![Page([PATTERN; 512]); 64 * SIZE / size_of::<Page>()];
    let mut passing = passing;
    // SAFETY: the thread alone uses the stack and the passing until it has been joined; neither is
    // moved or dropped before.
    unsafe {
        let mut attributes = std::mem::zeroed();
        let mut thread = std::mem::zeroed();
        assert_eq!(libc::pthread_attr_init(&mut attributes), 0);
        let (place, size) = (stack.as_mut_ptr().cast(), size_of_val(&*stack));
        assert_eq!(libc::pthread_attr_setstack(&mut attributes, place, size), 0);
        let argument = (&raw mut passing).cast();
        assert_eq!(libc::pthread_create(&mut thread, &attributes, run, argument), 0);
        assert_eq!(libc::pthread_join(thread, std::ptr::null_mut()), 0);
        libc::pthread_attr_destroy(&mut attributes);
    }
    let words = stack.iter().flat_map(|page| page.0);
    size_of_val(&*stack) - words.take_while(|&word| word == PATTERN).count() * size_of::<u64>()
}

#[test]
fn copies_message_as_often_as_documented() {
    let nothing = stack_used(Passing::Nothing);
    let limit = if cfg!(debug_assertions) { 3 } else { 1 };
    let all = [
        Passing::Queued,
        Passing::Called,
        Passing::Timed,
        #[cfg(feature = "async")]
        Passing::Async,
    ];
    for passing in all {
        let used = stack_used(passing);
        // Frames without a message differ by some KiB.
        let messages = (used - nothing + SIZE / 4) / SIZE;
        println!("{passing:?}: {:.2} messages", (used - nothing) as f64 / SIZE as f64);
        // One message is a parameter of the job.
        assert!(messages >= 1, "{passing:?}: the message is not on the stack");
        assert!(messages <= 1 + limit, "{passing:?}: {messages} messages on the stack");
    }
}

#[test]
fn passes_64_kib_on_default_stack() {
    for command in privileges::with_and_without(process::program("messages::programs::scan")) {
        let ended = process::start(command).end();
        assert_eq!(ended.code, 0, "{}", ended.output);
        assert!(ended.output.contains("SUM 65536"), "{}", ended.output);
    }
}

/// Returns the errors of spawns for which there is no room, as `Display` and `Debug` print them.
fn errors() -> Vec<[String; 2]> {
    let (sender, errors) = std::sync::mpsc::channel();
    full::run(Config::new().virtual_time(), sender).expect("the app starts");
    errors.iter().collect()
}

#[test]
fn names_full_task_and_capacity() {
    for shown in &errors()[..2] {
        for text in shown {
            assert!(text.contains("cannot spawn `work`: "), "{text}");
            assert!(text.contains("its capacity of 2 is used up"), "{text}");
            assert!(text.contains("set a larger `capacity`"), "{text}");
        }
    }
}

#[cfg(feature = "async")]
#[test]
fn names_incomplete_async_task() {
    for text in &errors()[2] {
        assert!(text.contains("cannot spawn `waits`: "), "{text}");
        assert!(text.contains("has not completed yet"), "{text}");
    }
}

mod programs {
    use super::*;

    #[test]
    #[ignore = "a program that the other tests run"]
    fn scan() {
        process::exit(punctual::export::main(super::scan::run));
    }
}
