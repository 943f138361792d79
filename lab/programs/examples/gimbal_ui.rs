//! Setpoints and the recording of the demo `gimbal`, whose controllers run on a CPU that Linux gave
//! up.
//!
//!     punctual isolate run --offline --cpus 3 -- gimbal gimbal_ui [SECONDS [FILE.csv]]

#[path = "shared/gimbal.rs"]
mod link;

#[punctual::app(report = "always")]
mod app {
    use std::fs::File;
    use std::io::{BufWriter, Write as _};

    use punctual::remote::{Remote, RemoteError};
    use punctual::sync::shared::{LatestWriter, RingConsumer};

    use crate::link::{RECORD, Record, Setpoints};

    /// From which time on (ms) which angles are wanted, in rad.
    const WANTED: [(u32, [f64; 2]); 3] = [(0, [0.0, 0.0]), (50, [0.5, 0.0]), (400, [0.5, -0.2])];

    #[shared]
    struct Shared {}

    #[local]
    struct Local {
        remote: Remote,
        setpoints: LatestWriter<'static, [f64; 2]>,
        record: RingConsumer<'static, [f64; 5], RECORD>,
        last: [f64; 5],
        recorded: u32,
        periods: u32,
        file: Option<BufWriter<File>>,
    }

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        let attach = || {
            let (remote, mut memory) = Remote::connect()?;
            Ok::<_, RemoteError>((remote, memory.attach::<Setpoints>()?, memory.attach::<Record>()?))
        };
        let (remote, setpoints, record) = attach().unwrap_or_else(|error| {
            eprintln!("gimbal_ui: {error}");
            std::process::exit(1)
        });
        let mut arguments = std::env::args().skip(1);
        let seconds: u32 = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(1);
        let file =
            arguments.next().map(|path| BufWriter::new(File::create(path).expect("it can be written")));
        let local = Local {
            remote,
            setpoints: setpoints.writer().expect("nothing else sets them"),
            record: record.consumer().expect("nothing else records"),
            last: [0.0; 5],
            recorded: 0,
            periods: seconds * 100,
            file,
        };
        (Shared {}, local)
    }

    #[task(priority = 2, period = 10.millis(), local = [remote, setpoints, periods, turn: u32 = 0])]
    fn setpoint(cx: setpoint::Context) {
        let turn = *cx.local.turn;
        if let Some((_, wanted)) = WANTED.iter().rev().find(|(from, _)| *from <= 10 * turn) {
            cx.local.setpoints.write(*wanted);
        }
        *cx.local.turn += 1;
        if turn == *cx.local.periods || cx.local.remote.has_ended() {
            punctual::shutdown();
        }
    }

    #[task(priority = 1, period = 20.millis(), local = [record, last, recorded, file])]
    fn recording(cx: recording::Context) {
        while let Some(line) = cx.local.record.pop() {
            (*cx.local.last, *cx.local.recorded) = (line, *cx.local.recorded + 1);
            if let Some(file) = cx.local.file {
                let [time_s, pan, tilt, wanted_pan, wanted_tilt] = line;
                // The recording ends where the disk does.
                let _ = writeln!(file, "{time_s},{pan},{tilt},{wanted_pan},{wanted_tilt}");
            }
        }
    }

    #[shutdown(local = [last, recorded])]
    fn shutdown(cx: shutdown::Context) {
        let [_, pan, tilt, wanted_pan, wanted_tilt] = *cx.local.last;
        println!("ui: {} periods recorded", cx.local.recorded);
        println!("ui: pan at {pan:.3} rad of {wanted_pan:.3}, tilt at {tilt:.3} rad of {wanted_tilt:.3}");
    }
}
