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

#[test]
fn runs() {
    assert_eq!(main(), std::process::ExitCode::SUCCESS);
}
