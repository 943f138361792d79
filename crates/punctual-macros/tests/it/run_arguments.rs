#[punctual::app]
mod app {
    #[shared]
    struct Shared {}

    #[local]
    struct Local {
        path: String,
    }

    #[init]
    fn init(_: init::Context, path: &str, times: u32) -> (Shared, Local) {
        for _ in 0..times {
            step::spawn().unwrap();
        }
        (Shared {}, Local { path: path.to_owned() })
    }

    #[task(capacity = 2, local = [path])]
    fn step(cx: step::Context) {
        assert_eq!(cx.local.path, "here");
        punctual::shutdown();
    }
}

#[test]
fn runs() {
    app::run(punctual::Config::from_env(), "here", 2).unwrap();
}
