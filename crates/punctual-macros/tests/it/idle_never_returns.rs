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
        .args(["--ignored", "--exact", "idle_never_returns::program"])
        .output_within(TEST_LIMIT)
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(
        !String::from_utf8_lossy(&output.stdout).contains("test result"),
        "the app has ended the process"
    );
}
