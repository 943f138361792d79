//! The time for publishing 64 bytes: 200 messages in a row in a job, 150 times, into a ring with
//! free slots and into a full one.
//!
//! `cargo bench -p punctual-bridge --bench publish`. The job reads the clock twice for all of its
//! messages.

use std::hint::black_box;
use std::io;
use std::sync::Mutex;

use punctual::{Config, Instant};
use punctual_bridge::{Bridge, Channel, Clock, Message, Publisher, Running, Sample, Sink, Topic};

const JOBS: u32 = 150;
/// As many as fit, so that none is lost.
const MESSAGES: u32 = 200;

/// 64 bytes.
#[derive(Clone, Copy, Message)]
struct State {
    values: [f64; 8],
}

static ROOMY: Topic<State, 1024> = Topic::new("/roomy");
static FULL: Topic<State, 16> = Topic::new("/full");

/// The time per message in each job, in ns: with free slots, and without.
static TIMES: Mutex<[Vec<f64>; 2]> = Mutex::new([Vec::new(), Vec::new()]);

/// Discards messages.
struct Away;

impl Sink for Away {
    fn name(&self) -> String {
        "away".into()
    }

    fn begin(&mut self, _: &[Channel], _: Clock) -> io::Result<()> {
        Ok(())
    }

    fn write(&mut self, _: &Channel, sample: &Sample<'_>) -> io::Result<()> {
        black_box(sample.payload);
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn end(&mut self, _: &[(&'static str, u64)]) -> io::Result<()> {
        Ok(())
    }
}

/// Returns the time per message of [`MESSAGES`], in ns.
#[inline(never)]
fn publish<const N: usize>(end: &mut Publisher<State, N>, released: Instant) -> f64 {
    let state = State { values: [0.5; 8] };
    let start = punctual::now();
    for _ in 0..MESSAGES {
        end.publish(released, black_box(state));
    }
    (punctual::now().as_ticks() - start.as_ticks()) as f64 / f64::from(MESSAGES)
}

#[punctual::app(main = false)]
mod app {
    use super::{Away, Bridge, FULL, JOBS, Publisher, ROOMY, Running, State, TIMES, publish};

    #[shared]
    struct Shared {}

    #[local]
    struct Local {
        roomy: Publisher<State, 1024>,
        full: Publisher<State, 16>,
        bridge: Option<Running>,
    }

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        TIMES.lock().unwrap().iter_mut().for_each(|times| times.reserve(JOBS as usize));
        // No sink takes messages from `FULL`.
        let bridge = Bridge::new().topic(&ROOMY).sink(Away).start().expect("it can start");
        let (roomy, full) = (ROOMY.publisher().expect("it is free"), FULL.publisher().expect("it is free"));
        (Shared {}, Local { roomy, full, bridge: Some(bridge) })
    }

    #[task(priority = 1, period = 40.millis(), local = [roomy, full])]
    fn job(cx: job::Context) {
        let times = [publish(cx.local.roomy, cx.released), publish(cx.local.full, cx.released)];
        let mut all = TIMES.lock().unwrap();
        all.iter_mut().zip(times).for_each(|(all, time)| all.push(time));
        if all[0].len() == JOBS as usize {
            punctual::shutdown();
        }
    }

    #[shutdown(local = [bridge])]
    fn shutdown(cx: shutdown::Context) {
        let report = cx.local.bridge.take().expect("it is finished once").finish();
        assert!(report.is_complete(), "each message had room: {report}");
    }
}

fn main() {
    drop(app::run(Config::from_env()).expect("it can be started"));
    for (what, mut times) in ["with room", "without"].into_iter().zip(TIMES.lock().unwrap().clone()) {
        times.sort_by(f64::total_cmp);
        let at = |share: usize| times[(times.len() - 1) * share / 100];
        println!(
            "64 bytes {what}: min {:.1} ns, median {:.1} ns, 90 % below {:.1} ns, max {:.1} ns, of {} jobs",
            at(0),
            at(50),
            at(90),
            at(100),
            times.len()
        );
    }
}
