//! `#[idle]` and `#[shutdown]`.

runs! { shutdown, shutdown_locals }

mod idle_never_returns {
    #[punctual::app]
    mod app {
        #[shared]
        struct Shared {}

        #[local]
        struct Local {}

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            (Shared {}, Local {})
        }

        #[idle]
        fn idle(_: idle::Context) -> ! {
            std::process::exit(0)
        }
    }

    /// Ends the process, because nothing else could end `idle`.
    #[test]
    #[ignore = "a program of the test below"]
    fn program() {
        main();
    }

    #[test]
    fn runs() {
        use punctual_process::child::{BoundedCommand, TEST_LIMIT};

        let mut program = std::process::Command::new(std::env::current_exe().unwrap());
        let output = program
            .args(["--ignored", "--exact", "handlers::idle_never_returns::program"])
            .output_within(TEST_LIMIT)
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        assert!(
            !String::from_utf8_lossy(&output.stdout).contains("test result"),
            "the app has ended the process"
        );
    }
}

mod shutdown {
    #[punctual::app]
    mod app {
        use punctual::prelude::*;

        #[shared]
        struct Shared {
            total: u32,
            table: [u32; 2],
            #[lock_free]
            free: u32,
        }

        #[local]
        struct Local {
            sensor: u32,
            of_shutdown: String,
        }

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            work::spawn().unwrap();
            let local = Local { sensor: 1, of_shutdown: String::new() };
            (Shared { total: 0, table: [1, 2], free: 0 }, local)
        }

        #[task(priority = 2, shared = [total, &table, free], local = [sensor])]
        fn work(mut cx: work::Context) {
            *cx.local.sensor += cx.shared.table[0];
            *cx.shared.free += 1;
            cx.shared.total.lock(|total| *total += 1);
            punctual::shutdown();
        }

        #[shutdown(shared = [total, &table, free], local = [sensor, of_shutdown, calls: u32 = 0])]
        fn shutdown(cx: shutdown::Context) {
            *cx.local.calls += 1;
            cx.local.of_shutdown.push('x');
            assert_eq!((*cx.local.sensor, *cx.local.calls), (2, 1));
        }
    }
}

mod shutdown_locals {
    #[punctual::app]
    mod app {
        #[shared]
        struct Shared {}

        #[local]
        struct Local {
            of_task: u32,
            of_idle: String,
            #[cfg(unix)]
            conditional: u8,
            of_shutdown: Vec<u32>,
        }

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            tick::spawn().unwrap();
            let local = Local {
                of_task: 1,
                of_idle: String::from("idle"),
                #[cfg(unix)]
                conditional: 7,
                of_shutdown: Vec::new(),
            };
            (Shared {}, local)
        }

        #[idle(local = [of_idle])]
        fn idle(cx: idle::Context) {
            cx.local.of_idle.push('!');
        }

        #[task(local = [of_task])]
        fn tick(cx: tick::Context) {
            *cx.local.of_task += 1;
            punctual::shutdown();
        }

        #[shutdown(local = [
            of_task,
            of_idle,
            #[cfg(unix)] conditional,
            of_shutdown,
            declared: [u8; 2] = [1, 2],
            #[cfg(unix)] text: String = format!("{}", 3),
            name: &'static str = "name",
        ])]
        fn shutdown(cx: shutdown::Context) {
            let local = cx.local;
            local.of_shutdown.push(*local.of_task);
            local.text.push_str(local.name);
            assert_eq!((&local.of_shutdown[..], *local.conditional, *local.declared), (&[2][..], 7, [1, 2]));
            assert!(local.of_idle.starts_with("idle"));
            assert_eq!(local.text, "3name");
        }
    }
}
