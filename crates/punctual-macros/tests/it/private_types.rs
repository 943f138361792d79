#![deny(private_interfaces, private_bounds)]

#[punctual::app(main = false)]
pub mod app {
    use std::os::unix::net::UnixDatagram;

    #[derive(Debug, PartialEq)]
    struct Message(u32);

    struct State(u32);

    struct Source(UnixDatagram);

    impl std::os::fd::AsFd for Source {
        fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
            self.0.as_fd()
        }
    }

    #[shared]
    struct Shared {
        state: State,
    }

    #[local]
    struct Local {
        own: State,
        source: Source,
    }

    struct Start(u32);

    #[init]
    fn init(_: init::Context, start: u32) -> (Shared, Local) {
        let start = Start(start);
        tick::spawn(Message(start.0), [Message(2)]).unwrap();
        let (source, _) = UnixDatagram::pair().unwrap();
        (Shared { state: State(0) }, Local { own: State(0), source: Source(source) })
    }

    #[task(shared = [&state], local = [own, more: State = State(3)])]
    fn tick(cx: tick::Context, message: Message, [other]: [Message; 1]) {
        cx.local.own.0 += message.0 + other.0;
        assert_eq!((cx.shared.state.0, cx.local.own.0, cx.local.more.0), (0, 3, 3));
        punctual::shutdown();
    }

    #[task(binds = source, local = [source])]
    fn on_source(_: on_source::Context) {}
}

#[test]
fn runs() {
    app::run(punctual::Config::from_env(), 1).unwrap();
}
