//! Jobs on several CPUs, and their locks.

use punctual::Config;

use crate::profile::{File, assert_has};

// Two jobs use one resource: `first` holds it from 1 to 6 ms, `second` requests it at 2 ms, and
// holds it for 2 ms.

const FIRST: [&str; 2] = [
    "\"execution_max_ns\": 7000000, \"execution_min_ns\": 7000000, \"response_max_ns\": 7000000",
    "\"holds\": [{ \"resource\": \"data\", \"longest_ns\": 5000000, \"most_per_job\": 1, \"nested\": false }]",
];
/// It executes for 4 ms, and waits for 4 ms.
const SECOND: [&str; 2] = [
    "\"execution_max_ns\": 4000000, \"execution_min_ns\": 4000000",
    "\"holds\": [{ \"resource\": \"data\", \"longest_ns\": 2000000, \"most_per_job\": 1, \"nested\": false }]",
];

mod partitions {
    use super::*;

    #[punctual::app(main = false, profile, partitions = [a(cpu = 0), b(poll)])]
    mod app {
        use punctual::prelude::*;

        #[shared]
        struct Shared {
            data: u32,
        }

        #[local]
        struct Local {}

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            first::spawn().unwrap();
            second::spawn_after(1.millis()).unwrap();
            (Shared { data: 0 }, Local {})
        }

        #[task(core = a, shared = [data])]
        fn first(mut cx: first::Context) {
            punctual::spend(1.millis());
            cx.shared.data.lock(|_| punctual::spend(5.millis()));
            remote::spawn().unwrap();
            punctual::spend(1.millis());
        }

        #[task(core = b, shared = [data])]
        fn second(mut cx: second::Context) {
            punctual::spend(1.millis());
            cx.shared.data.lock(|_| punctual::spend(2.millis()));
            punctual::spend(1.millis());
        }

        /// At 6 ms, while `second` runs.
        #[task(core = b, priority = 2, execution = 1.millis())]
        fn remote(_: remote::Context) {}
    }

    #[test]
    fn waiting_for_another_cpu_is_not_execution() {
        let file = File::new("partitions");
        app::run(Config::new().virtual_time().profile(file.path())).unwrap();
        assert_has(&file.task("first"), &FIRST);
        assert_has(
            &file.task("first"),
            &[
                "\"spawns\": [{ \"task\": \"remote\", \"most_per_job\": 1, \"earliest_ns\": 0, \"in_section\": false }]",
            ],
        );
        assert_has(&file.task("second"), &SECOND);
        assert_has(&file.task("remote"), &["\"jobs\": 1, \"execution_max_ns\": 1000000"]);
        assert_has(
            &file.text(),
            &["\"name\": \"a\",\n      \"cpu\": null", "\"name\": \"b\",\n      \"cpu\""],
        );
    }
}

mod global {
    use super::*;

    #[punctual::app(main = false, profile, executor = "global")]
    mod app {
        use punctual::prelude::*;

        #[shared]
        struct Shared {
            data: u32,
        }

        #[local]
        struct Local {}

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            first::spawn().unwrap();
            second::spawn_after(1.millis()).unwrap();
            (Shared { data: 0 }, Local {})
        }

        #[idle(shared = [data])]
        fn idle(mut cx: idle::Context) {
            cx.shared.data.lock(|_| ());
        }

        #[task(priority = 1, shared = [data])]
        fn first(mut cx: first::Context) {
            punctual::spend(1.millis());
            cx.shared.data.lock(|_| punctual::spend(5.millis()));
            punctual::spend(1.millis());
        }

        #[task(priority = 2, shared = [data])]
        fn second(mut cx: second::Context) {
            punctual::spend(1.millis());
            cx.shared.data.lock(|_| punctual::spend(2.millis()));
            punctual::spend(1.millis());
        }
    }

    #[test]
    fn waiting_for_another_level_is_not_execution() {
        let file = File::new("global");
        app::run(Config::new().virtual_time().profile(file.path())).unwrap();
        assert_has(&file.task("first"), &FIRST);
        assert_has(&file.task("second"), &SECOND);
        assert_has(&file.task("second"), &["\"response_max_ns\": 8000000, \"jitter_max_ns\": 0"]);
        let text = file.text();
        assert_has(&text, &["\"partitions\": [\n    {\n      \"name\": \"global\",\n      \"cpu\": null"]);
        let (_, idle) = text.split_once("\"idle\": {").expect("there is one");
        assert_has(
            idle,
            &[
                "\"holds\": [{ \"resource\": \"data\", \"longest_ns\": 0, \"most_per_job\": 1, \"nested\": false }]",
            ],
        );
    }
}
