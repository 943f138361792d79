//! A controller on a CPU that Linux gave up, with a user interface on Linux.
//!
//!     punctual isolate run --offline --cpus 3 -- level level_ui [HOW-IT-ENDS]
//!
//! At 1 kHz, a level follows what the user wants; ten times a second, the user interface gets the
//! level.
#![no_std]
#![no_main]

#[path = "../../../../lab/programs/examples/shared/level.rs"]
mod link;

#[punctual::app(report = "always")]
mod app {
    use punctual::sync::shared::{Heartbeat, HeartbeatMonitor, LatestReader, RingProducer};
    use punctual_bare::{amp, println};

    use crate::link::{self, Beat, Failures, Levels, Wanted};

    /// Periods of the controller between two answers.
    const PERIODS_PER_ANSWER: u32 = 100;

    #[shared]
    struct Shared {}

    #[local]
    struct Local {
        wanted: LatestReader<'static, f32>,
        levels: RingProducer<'static, [f32; 2], 16>,
        failures: &'static Failures,
        own_beat: &'static Heartbeat,
        linux_beat: &'static Heartbeat,
        monitor: HeartbeatMonitor,
    }

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        let mut memory = amp::arena().expect("nothing else places structures");
        let room = "the memory has room for all of them";
        let local = Local {
            wanted: memory.init::<Wanted>(0.0).expect(room).reader().expect("nothing else reads it"),
            levels: memory.init::<Levels>(()).expect(room).producer().expect("nothing else writes it"),
            failures: memory.init(()).expect(room),
            own_beat: memory.init::<Beat>(()).expect(room),
            linux_beat: memory.init::<Beat>(()).expect(room),
            monitor: HeartbeatMonitor::new(link::SILENCE),
        };
        println!("control: begins on CPU {}", amp::cpu());
        (Shared {}, local)
    }

    #[task(priority = 3, period = 1.millis(), local = [wanted, levels, level: f32 = 0.0, turn: u32 = 0])]
    fn control(cx: control::Context) {
        let wanted = cx.local.wanted.read().value;
        *cx.local.level += 0.02 * (wanted - *cx.local.level);
        *cx.local.turn += 1;
        if cx.local.turn.is_multiple_of(PERIODS_PER_ANSWER) {
            // If the user interface is behind, the next answer is newer.
            let _ = cx.local.levels.push([(*cx.local.turn / PERIODS_PER_ANSWER) as f32, *cx.local.level]);
            amp::ring();
        }
    }

    /// Released when Linux rings. Fails on demand.
    #[task(priority = 2, binds = BELL, local = [failures])]
    fn rung(cx: rung::Context) {
        cx.local.failures.drain(|how| match how {
            link::SHUT_DOWN => punctual::shutdown(),
            link::PANIC => panic!("as demanded"),
            link::FAULT => {
                // SAFETY: none. Nothing is mapped there, so the MMU reports a fault, which is the
                // purpose.
                let _ = unsafe { (0x7f_0000_0000 as *const u32).read_volatile() };
            }
            link::HANG => loop {
                core::hint::spin_loop();
            },
            _ => {}
        });
    }

    /// Runs at the lowest level, so that a job that never ends cannot stay undetected.
    #[task(priority = 1, period = 2.secs(), local = [own_beat, linux_beat, monitor])]
    fn watch(cx: watch::Context) {
        cx.local.own_beat.beat();
        if cx.local.monitor.is_silent(cx.local.linux_beat, punctual::now()) {
            println!("control: the user interface is silent");
            punctual::shutdown();
        }
    }

    #[shutdown]
    fn shutdown(_: shutdown::Context) {
        println!("control: safe");
    }
}
