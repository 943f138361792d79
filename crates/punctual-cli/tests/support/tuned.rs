//! An app with parameters, in a separate process.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use punctual_bridge::parameters::StartError;
use punctual_bridge::{Parameters, Tunable, TunableReader, Tuning, TuningServer};
use punctual_process::child::BoundedChild;

#[derive(Debug, Clone, Copy, Parameters)]
struct Pid {
    #[parameter(default = 1.2, range = 0.0..=10.0, unit = "A/rad")]
    kp: f64,
    #[parameter(default = 0.05, range = 0.0..=1.0, unit = "A/(rad s)")]
    ki: f64,
}

#[derive(Debug, Clone, Copy, Parameters)]
struct Gains {
    #[parameter(nested)]
    pid: Pid,
    #[parameter(default = 8, range = 1..=64)]
    window: u16,
    #[parameter(default = true)]
    enabled: bool,
}

static GAINS: Tunable<Gains> = Tunable::new();

/// The variable with the name of the app.
const NAME: &str = "TUNED_NAME";

#[punctual::app(main = false)]
mod tuned {
    use super::{GAINS, Gains, StartError, TunableReader, TuningServer, start};

    #[shared]
    struct Shared {}

    #[local]
    struct Local {
        gains: TunableReader<Gains>,
        _server: Result<TuningServer<Gains>, StartError>,
    }

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        let gains = GAINS.reader().expect("nobody else reads them");
        (Shared {}, Local { gains, _server: start() })
    }

    /// Prints its parameters, whenever they change.
    #[task(priority = 2, period = 2.millis(), local = [gains, _server])]
    fn control(cx: control::Context) {
        let reading = cx.local.gains.read();
        if reading.is_new {
            let Gains { pid, window, enabled } = reading.value;
            println!("READS {} {} {window} {enabled}", pid.kp, pid.ki);
        }
    }

    /// Ends with the test.
    #[idle]
    fn idle(_: idle::Context) {
        let _ = std::io::stdin().read_line(&mut String::new());
        punctual::shutdown();
    }
}

fn start() -> Result<TuningServer<Gains>, StartError> {
    Tuning::new(&GAINS).start(&std::env::var(NAME).expect("the test says it"))
}

/// Runs the app; ends by itself, in case it is not killed.
pub(crate) fn run() {
    tuned::run(punctual::Config::new().until(punctual::Duration::from_secs(900))).expect("it can be started");
}

/// The app in progress; killed on drop.
pub(crate) struct App {
    child: Child,
    lines: BufReader<ChildStdout>,
    _stdin: ChildStdin,
    pub(crate) name: String,
}

impl App {
    /// Starts the test that [runs](run) it under this name, and waits for its first job.
    pub(crate) fn start(test: &str, name: &str) -> Self {
        let mut command = Command::new(std::env::current_exe().expect("a process knows its executable"));
        command.args(["--ignored", "--exact", "--nocapture", test]).env(NAME, name);
        for name in ["PUNCTUAL_PORT", "PUNCTUAL_CPU", "PUNCTUAL_STRICT", "PUNCTUAL_METRICS"] {
            command.env_remove(name);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("the test is a program");
        let lines = BufReader::new(child.stdout.take().expect("it is piped"));
        let stdin = child.stdin.take().expect("it is piped");
        let mut app = Self { child, lines, _stdin: stdin, name: name.into() };
        assert_eq!(app.reads(), "1.2 0.05 8 true", "the defaults");
        app
    }

    /// Returns the values that the next job with new values reads.
    pub(crate) fn reads(&mut self) -> String {
        let mut line = String::new();
        while self.lines.read_line(&mut line).expect("it is text") > 0 {
            if let Some((_, reads)) = line.trim_end().split_once("READS ") {
                return reads.to_owned();
            }
            line.clear();
        }
        panic!("the app has ended");
    }

    pub(crate) fn process(&self) -> String {
        self.child.id().to_string()
    }
}

impl Drop for App {
    fn drop(&mut self) {
        let _ = self.child.end_at_once();
    }
}
