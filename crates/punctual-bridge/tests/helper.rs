//! The helper is an ordinary thread off the CPUs of the app, as the kernel says.

use std::collections::BTreeSet;
use std::io;
use std::sync::Mutex;

use punctual::{Config, Duration};
use punctual_bridge::{Channel, Clock, Message, Sample, Sink, Topic};
use punctual_core::cpus;

#[derive(Clone, Copy, Message)]
struct Number {
    number: u64,
}

static NUMBERS: Topic<Number, 64> = Topic::new("/numbers");

/// What the kernel says of a thread: its policy, and the CPUs that it may run on.
type Settings = (String, String);

/// What it says of the helper.
static HELPER: Mutex<Option<Settings>> = Mutex::new(None);

fn of_this_thread() -> Settings {
    let stat = std::fs::read_to_string("/proc/thread-self/stat").expect("it is there");
    // Behind the name, which may have spaces: the policy is the 41st field of all.
    let behind = stat.rsplit_once(')').expect("the name is in parentheses").1;
    let policy = behind.split_whitespace().nth(38).expect("there are more fields").to_owned();
    let status = std::fs::read_to_string("/proc/thread-self/status").expect("it is there");
    let cpus = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    (policy, cpus.expect("the kernel tells").trim().to_owned())
}

/// Looks at the thread that it is called on.
struct Looking;

impl Sink for Looking {
    fn name(&self) -> String {
        "looking".into()
    }

    fn begin(&mut self, _: &[Channel], _: Clock) -> io::Result<()> {
        Ok(())
    }

    fn write(&mut self, _: &Channel, _: &Sample<'_>) -> io::Result<()> {
        *HELPER.lock().unwrap() = Some(of_this_thread());
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn end(&mut self, _: &[(&'static str, u64)]) -> io::Result<()> {
        Ok(())
    }
}

#[punctual::app(main = false)]
mod app {
    use punctual_bridge::{Bridge, Publisher, Running};

    use super::{Looking, NUMBERS, Number};

    #[shared]
    struct Shared {}

    #[local]
    struct Local {
        numbers: Publisher<Number, 64>,
        bridge: Option<Running>,
    }

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        let bridge = Bridge::new().topic(&NUMBERS).sink(Looking).start().expect("it can start");
        let numbers = NUMBERS.publisher().expect("nobody else publishes it");
        publish::spawn().expect("it is spawned once");
        (Shared {}, Local { numbers, bridge: Some(bridge) })
    }

    #[task(local = [numbers])]
    fn publish(cx: publish::Context) {
        cx.local.numbers.publish(punctual::now(), Number { number: 1 });
        punctual::shutdown();
    }

    #[shutdown(local = [bridge])]
    fn shutdown(cx: shutdown::Context) {
        let report = cx.local.bridge.take().expect("it is finished once").finish();
        assert_eq!((report.topics[0].taken, report.topics[0].lost), (1, 0));
    }
}

#[test]
fn is_an_ordinary_thread_off_the_cpus_of_the_app() {
    let report = app::run(Config::new().until(Duration::from_secs(60))).expect("nothing is required");
    let (policy, cpus) = HELPER.lock().unwrap().clone().expect("one message came");
    assert_eq!(policy, "0", "SCHED_OTHER");
    let cpus: BTreeSet<usize> = cpus::list(&cpus).collect();
    let all = cpus::list(&of_this_thread().1).count();
    let real_time = report.settings.threads.iter().filter(|thread| thread.policy == "SCHED_FIFO");
    let taken: BTreeSet<usize> = real_time.flat_map(|thread| cpus::list(&thread.cpus)).collect();
    if !taken.is_empty() && taken.len() < all {
        assert!(cpus.is_disjoint(&taken), "the helper may run on {cpus:?}, the app has {taken:?}");
    } else {
        eprintln!("*** SKIPPED: NO REAL-TIME THREADS, OR NO CPU BESIDE THEIRS ***");
    }
}
