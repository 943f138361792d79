#[punctual::app]
mod app {
    #[shared]
    struct Shared {}

    #[local]
    struct Local {
        sensor: Vec<u8>,
        #[cfg(unix)]
        port: u32,
        of_idle: String,
        unused: u8,
    }

    #[init(local = [buffer: [u8; 16] = [7; 16]])]
    fn init(cx: init::Context) -> (Shared, Local) {
        let sensor = cx.local.buffer.to_vec();
        count::spawn().unwrap();
        (
            Shared {},
            Local {
                sensor,
                #[cfg(unix)]
                port: 1,
                of_idle: String::new(),
                unused: 0,
            },
        )
    }

    #[idle(local = [of_idle, turns: u64 = 0])]
    fn idle(cx: idle::Context) {
        cx.local.of_idle.push('x');
        *cx.local.turns += 1;
    }

    #[task(local = [sensor, #[cfg(unix)] port, calls: u32 = 0, #[cfg(unix)] table: [u8; 4] = [0; 4]])]
    fn count(count::Context { local, .. }: count::Context) {
        assert_eq!(local.sensor.len(), 16);
        *local.calls += *local.port;
        local.table[0] += 1;
        if *local.calls < 3 {
            again::spawn().unwrap();
        } else {
            punctual::shutdown();
        }
    }

    /// Its `calls` is distinct from that of `count`.
    #[task(local = [calls: u32 = 0])]
    fn again(cx: again::Context) {
        *cx.local.calls += 1;
        count::spawn().unwrap();
    }
}

#[test]
fn runs() {
    assert_eq!(main(), std::process::ExitCode::SUCCESS);
}
