//! The topic `/diagnostics` of an app in another process.

use std::env;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use punctual::Config;
use punctual_bridge::message::{parse, show};
use punctual_bridge::transport::Attachment;
use punctual_process::child::{BoundedChild, TEST_LIMIT};

/// The variable with the name of the app.
const APP: &str = "PUNCTUAL_TEST_DIAGNOSTICS";
/// Longer than any machine takes.
const LIMIT: Duration = Duration::from_secs(600);

#[punctual::app(main = false)]
mod app {
    use punctual::prelude::*;
    use punctual_bridge::{Bridge, Running, TransportServer};

    #[shared]
    struct Shared {}

    #[local]
    struct Local {
        bridge: Option<Running>,
    }

    #[init]
    fn init(_: init::Context, name: String) -> (Shared, Local) {
        let bridge = Bridge::new().transports(TransportServer::new(&name)).start();
        (Shared {}, Local { bridge: Some(bridge.expect("it can start")) })
    }

    /// Misses each deadline.
    #[task(period = 20.millis(), deadline = 1.millis(), priority = 1)]
    fn late(_: late::Context) {
        punctual::spend(2.millis());
    }

    #[shutdown(local = [bridge])]
    fn shutdown(cx: shutdown::Context) {
        drop(cx.local.bridge.take());
    }
}

/// The process of the app. Does nothing in the first process.
#[test]
fn child() {
    let Ok(name) = env::var(APP) else { return };
    std::thread::spawn(|| {
        let _ = std::io::stdin().read_line(&mut String::new());
        punctual::shutdown();
    });
    app::run(Config::new(), name).expect("nothing is required");
}

#[test]
fn diagnostics_report_deadline_misses() {
    let name = format!("it-diagnostics-{}", std::process::id());
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", "diagnostics::child"]).env(APP, &name);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();

    let end = Instant::now() + LIMIT;
    let mut transport = loop {
        match Attachment::open(&name, "reader") {
            Ok(transport) => break transport,
            Err(error) => assert!(Instant::now() < end, "{error}"),
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    let topic = transport.topics()[0].clone();
    assert_eq!((topic.name.as_str(), topic.hz), ("/diagnostics", Some(1)));
    let description = parse(&topic.type_name, &topic.definition).unwrap();
    let task = format!("{{level: 1, name: \"{name}: task late\", message: \"");
    let mut shown = String::new();
    while !shown.contains(&task) {
        assert!(transport.wait(LIMIT) && Instant::now() < end, "{shown}");
        transport.read(|_, message| shown = show(description, message.payload).unwrap());
    }
    let values = shown.split_once(&task).unwrap().1;
    assert!(values.contains(" deadline misses and "), "{shown}");
    for part in ["{key: \"jobs\", value: \"", "real-time settings\", message: \"", ": bridge\", message: \""]
    {
        assert!(values.contains(part), "{shown}");
    }
    drop(child.stdin.take());
    assert!(child.status_within(TEST_LIMIT).unwrap().success());
}
