//! A gimbal that runs until a test has observed the expected event.

use std::fs;
use std::path::Path;
use std::process::{Child, ExitStatus, Output};
use std::thread;
use std::time::{Duration, Instant};

use mcap::MessageStream;
use mcap::read::Options;
use punctual_process::child::{BoundedChild, TEST_LIMIT};

/// Longer than needed on any machine.
const RUN_TIMEOUT: Duration = Duration::from_secs(1200);

/// A process that does not outlive the test.
pub(crate) struct Live(Option<Child>);

impl Live {
    pub(crate) fn new(child: Child) -> Self {
        Self(Some(child))
    }

    pub(crate) fn child(&mut self) -> &mut Child {
        self.0.as_mut().expect("it was not ended")
    }

    /// Calls `attempt` until it returns something.
    #[allow(dead_code, reason = "not every test knows that it does not end")]
    pub(crate) fn wait_for<R>(&mut self, attempt: impl FnMut() -> Option<R>) -> R {
        self.wait_or_end(attempt).unwrap_or_else(|ended| panic!("the expected event does not occur: {ended}"))
    }

    /// Calls `attempt` until it returns something, or the process has ended.
    pub(crate) fn wait_or_end<R>(&mut self, mut attempt: impl FnMut() -> Option<R>) -> Result<R, ExitStatus> {
        let begun = Instant::now();
        loop {
            if let Some(found) = attempt() {
                return Ok(found);
            }
            if let Some(ended) = self.child().try_wait().expect("it can be asked") {
                return Err(ended);
            }
            assert!(begun.elapsed() < RUN_TIMEOUT, "the expected event does not occur");
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Ends the process as Ctrl-C does.
    #[allow(dead_code, reason = "not every test does")]
    pub(crate) fn interrupt(mut self) -> Output {
        let child = self.0.take().expect("it is ended once");
        // SAFETY: sends a signal to a process that has not been waited for.
        assert_eq!(unsafe { libc::kill(child.id() as libc::pid_t, libc::SIGINT) }, 0);
        child.output_within(TEST_LIMIT).expect("it ends")
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.end_at_once();
        }
    }
}

/// Returns the numbers of the messages of a topic in a recording, which may not be complete yet.
#[allow(dead_code, reason = "not every test looks into a recording")]
pub(crate) fn messages(path: &Path, topic: &str) -> Vec<Vec<f64>> {
    let recorded = fs::read(path).unwrap_or_default();
    let Ok(messages) = MessageStream::new_with_options(&recorded, Options::IgnoreEndMagic.into()) else {
        return vec![];
    };
    let messages = messages.map_while(Result::ok).filter(|message| message.channel.topic == topic);
    let number = |bytes: &[u8]| f64::from_le_bytes(bytes.try_into().expect("there are eight"));
    messages.map(|message| message.data[4..].chunks_exact(8).map(number).collect()).collect()
}
