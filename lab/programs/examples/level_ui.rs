//! The user interface of `level`, which runs on a CPU that Linux gave up.
//!
//!     punctual isolate run --offline --cpus 3 -- level level_ui [HOW-IT-ENDS]
//!
//! Sets the level, prints it, and ends in the way that the command line names.

#[path = "shared/level.rs"]
mod link;

#[punctual::app(report = "always")]
mod app {
    use punctual::remote::{Remote, RemoteError, RemoteMemory};
    use punctual::sync::shared::{Heartbeat, HeartbeatMonitor, LatestWriter, RingConsumer};

    use crate::link::{self, Beat, Failures, Levels, Wanted};

    /// Level that shows that the controller follows the wanted one.
    const FOLLOWED: f32 = 0.1;

    #[shared]
    struct Shared {}

    #[local]
    struct Local {
        remote: Remote,
        wanted: LatestWriter<'static, f32>,
        levels: RingConsumer<'static, [f32; 2], 16>,
        failures: &'static Failures,
        control_beat: &'static Heartbeat,
        own_beat: &'static Heartbeat,
        monitor: HeartbeatMonitor,
        how: String,
    }

    impl Local {
        fn attach(remote: Remote, mut memory: RemoteMemory) -> Result<Self, RemoteError> {
            Ok(Self {
                remote,
                wanted: memory.attach::<Wanted>()?.writer().expect("nothing else writes it"),
                levels: memory.attach::<Levels>()?.consumer().expect("nothing else reads it"),
                failures: memory.attach()?,
                control_beat: memory.attach::<Beat>()?,
                own_beat: memory.attach::<Beat>()?,
                monitor: HeartbeatMonitor::new(link::SILENCE),
                how: std::env::args().nth(1).unwrap_or_default(),
            })
        }
    }

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        let attached = Remote::connect().and_then(|(remote, memory)| Local::attach(remote, memory));
        let local = attached.unwrap_or_else(|error| {
            eprintln!("level_ui: {error}");
            std::process::exit(1)
        });
        (Shared {}, local)
    }

    /// Released when the controller rings, and at its end.
    #[task(priority = 2, binds = remote, local = [remote, wanted, levels, failures, how])]
    fn show(cx: show::Context) {
        cx.local.remote.acknowledge();
        while let Some([answer, level]) = cx.local.levels.pop() {
            println!("ui: {answer}: the level is {level:.2}");
            cx.local.wanted.write(1.0);
            if answer >= 5.0 && level > FOLLOWED {
                end(cx.local.how, *cx.local.remote, cx.local.failures);
            }
        }
        if cx.local.remote.has_ended() {
            punctual::shutdown();
        }
    }

    /// At the lowest level, so that no job that goes on for ever stays undetected.
    #[task(priority = 1, period = 2.secs(), local = [own_beat, control_beat, monitor])]
    fn watch(cx: watch::Context) {
        cx.local.own_beat.beat();
        if cx.local.monitor.is_silent(cx.local.control_beat, punctual::now()) {
            println!("ui: the controller is silent");
            punctual::shutdown();
        }
    }

    fn end(how: &str, remote: Remote, failures: &Failures) {
        let fail = |how| {
            // A second order may find no room, which has no consequence.
            let _ = failures.send(how);
            remote.ring();
        };
        match how {
            "panic" => panic!("as demanded"),
            "abort" => std::process::abort(),
            "exit" => std::process::exit(7),
            "hang" => std::thread::sleep(std::time::Duration::from_secs(60)),
            "other-ends" => fail(link::SHUT_DOWN),
            "other-panics" => fail(link::PANIC),
            "other-hangs" => fail(link::HANG),
            "other-faults" => fail(link::FAULT),
            "runs" => {}
            _ => punctual::shutdown(),
        }
    }

    #[shutdown]
    fn shutdown(_: shutdown::Context) {
        println!("ui: ends");
    }
}
