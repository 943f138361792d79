//! The MainDevice: starts the bus on an ordinary thread, then exchanges process data from a job.
//!
//! `ethercrab` consists of futures and performs no I/O. [`Bus::start`] drives them with a loop that
//! sends, waits and receives. After that a future lives from one release to the next: [`Bus::send`]
//! creates it and hands its frame to the interface, [`Bus::receive`] fetches the frames that have
//! arrived and polls it once. The two functions neither wait nor allocate, and need no other
//! thread.

use std::io;
use std::pin::{Pin, pin};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant as StdInstant};

use ethercrab::error::Error;
use ethercrab::subdevice_group::{CycleInfo, DcConfiguration, HasDc, Op};
use ethercrab::{
    Command, DcSync, DefaultLock, MainDevice, MainDeviceConfig, PduRx, PduStorage, PduTx, RegisterAddress,
    RetryBehaviour, SubDeviceGroup, SubDeviceState, Timeouts, TxRxResponse,
};

use punctual::Instant;

use crate::link::{Link, MAX_FRAME_BYTES};

/// Most SubDevices of a bus; a power of two.
pub const MAX_SUBDEVICES: usize = 8;
/// Most bytes of process data. They fit one frame, so an exchange is one frame.
pub const MAX_PROCESS_DATA: usize = 256;
/// Largest difference between the clock of a SubDevice and the reference at the start.
pub const MAX_CLOCK_DIFFERENCE: Duration = Duration::from_micros(1);

/// Frames in flight: that of the exchange, one that `ethercrab` prepares, late ones.
const FRAMES: usize = 4;
const FRAME_DATA_BYTES: usize = PduStorage::element_size(1024);
/// Frames that a job receives at most.
const MAX_RECEIVED: usize = 2 * FRAMES;
/// Delay of the first SYNC0.
const SYNC0_DELAY: Duration = Duration::from_millis(10);
const START_TIMEOUT: Duration = Duration::from_secs(20);
/// Exchanges within which the SubDevices reach OP.
const START_EXCHANGES: u32 = 5_000;
const STOP_TIMEOUT: Duration = Duration::from_millis(100);
/// AL control: Init, and errors are acknowledged.
const INIT_AND_ACKNOWLEDGE: u16 = 0x0011;
/// Of a SubDevice with outputs and inputs: LRW counts a read as one, a write as two.
const COUNTER_PER_SUBDEVICE: u16 = 3;

type Group = SubDeviceGroup<MAX_SUBDEVICES, MAX_PROCESS_DATA, DefaultLock, Op, HasDc>;
type Response = Result<TxRxResponse<MAX_SUBDEVICES, CycleInfo>, Error>;

/// Reason why a bus does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The interface failed.
    #[error("cannot exchange frames: {0}; check the interface")]
    Io(#[from] io::Error),
    /// No SubDevice answers.
    #[error("no SubDevice answers; check the cable and the supply")]
    NoSubDevice,
    /// A SubDevice lacks outputs or inputs.
    #[error("SubDevice {0} lacks outputs or inputs; this program is for drives with both")]
    ProcessData(usize),
    /// A clock differs from the reference, in nanoseconds.
    #[error(
        "the clock of SubDevice {index} differs by {nanoseconds} ns; check its support of distributed clocks"
    )]
    Clock {
        /// Position of the SubDevice.
        index: usize,
        /// Difference.
        nanoseconds: u32,
    },
    /// A SubDevice refused a request, or did not answer it.
    #[error("cannot start the bus: {0}; check the state of the SubDevices")]
    Protocol(Error),
    /// The SubDevices did not reach SafeOp within the time limit.
    #[error("the SubDevices did not reach SafeOp within {} s; check the state of the SubDevices", START_TIMEOUT.as_secs())]
    Timeout,
}

impl From<Error> for StartError {
    fn from(error: Error) -> Self {
        Self::Protocol(error)
    }
}

/// A frame's passage of the reference clock.
#[derive(Debug, Clone, Copy)]
pub struct Passage {
    /// Instant at which the frame was sent.
    pub sent_at: Instant,
    /// Time of the distributed clocks at the passage, in nanoseconds.
    pub system_time_ns: u64,
    /// Time since the last SYNC0, in nanoseconds.
    pub phase_ns: u64,
}

/// Reason why an exchange of process data is without result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The frame has not returned before the next release, or the interface did not take it.
    Lost,
    /// This counter shows that not every SubDevice has processed the frame.
    WorkingCounter(u16),
    /// A SubDevice has left OP.
    NotOperational(SubDeviceState),
    /// The frame is not as expected.
    Protocol(Error),
}

/// A future whose place is reused, so that a job creates one without allocating.
struct Slot<F, S> {
    create: S,
    future: Pin<Box<Option<F>>>,
}

trait Exchange: Send {
    /// Starts an exchange. An unfinished one is dropped, which releases its frame.
    fn start(&mut self);
    /// Returns the result of the exchange, and ends it.
    fn poll(&mut self) -> Poll<Response>;
    /// Drops the exchange.
    fn abandon(&mut self);
}

impl<F: Future<Output = Response> + Send, S: Fn() -> F + Send> Exchange for Slot<F, S> {
    fn start(&mut self) {
        self.future.set(Some((self.create)()));
    }

    fn poll(&mut self) -> Poll<Response> {
        let Some(future) = self.future.as_mut().as_pin_mut() else { return Poll::Pending };
        let response = future.poll(&mut Context::from_waker(Waker::noop()));
        if response.is_ready() {
            self.abandon();
        }
        response
    }

    fn abandon(&mut self) {
        self.future.set(None);
    }
}

/// A bus that exchanges process data.
pub struct Bus {
    ends: Ends,
    main: &'static MainDevice<'static>,
    group: &'static Group,
    exchange: Box<dyn Exchange>,
    phase: Phase,
    sent_at: Instant,
    expected: u16,
    /// Frames that belong to no exchange, as late ones.
    unexpected: u64,
}

/// Progress of the exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Nothing has been sent.
    Idle,
    /// SubDevices are reaching OP, since this number of exchanges.
    Starting(u32),
    /// All SubDevices have been in OP.
    Operational,
}

/// The ends of `ethercrab` and of the interface, where frames pass.
struct Ends {
    link: Box<dyn Link>,
    tx: PduTx<'static>,
    rx: PduRx<'static>,
    buffer: Box<[u8; MAX_FRAME_BYTES]>,
}

impl Ends {
    /// Hands the frames of `ethercrab` to the interface; `false` if it did not take one.
    fn send(&mut self) -> bool {
        while let Some(frame) = self.tx.next_sendable_frame() {
            let link = &mut self.link;
            let sent = frame.send_blocking(|bytes| match link.send(bytes) {
                Ok(()) => Ok(bytes.len()),
                Err(_) => Err(Error::SendFrame),
            });
            // The frame would be offered again.
            if sent.is_err() {
                return false;
            }
        }
        true
    }

    /// Hands the frames that have arrived to `ethercrab`, and returns how many it did not expect.
    fn receive(&mut self) -> io::Result<u64> {
        let mut unexpected = 0;
        for _ in 0..MAX_RECEIVED {
            let Some(length) = self.link.receive(&mut self.buffer)? else { break };
            let frame = self.buffer.get(..length).unwrap_or_default();
            unexpected += u64::from(self.rx.receive_frame(frame).is_err());
        }
        Ok(unexpected)
    }

    /// Runs a future of `ethercrab` on this thread, at most for `limit`.
    fn run<T>(
        &mut self,
        future: impl Future<Output = Result<T, StartError>>,
        limit: Duration,
    ) -> Result<T, StartError> {
        let end = StdInstant::now() + limit;
        let mut future = pin!(future);
        while StdInstant::now() < end {
            advance();
            let context = &mut Context::from_waker(Waker::noop());
            if let Poll::Ready(result) = future.as_mut().poll(context) {
                return result;
            }
            self.send();
            self.link.wait()?;
            self.receive()?;
        }
        Err(StartError::Timeout)
    }
}

impl Bus {
    /// Brings all SubDevices to SafeOp, with SYNC0 at `period`, and requests OP, which they reach
    /// with the exchange of process data.
    ///
    /// Takes some seconds, allocates and blocks: call it before the app runs.
    ///
    /// # Errors
    /// See [`StartError`].
    pub fn start(link: Box<dyn Link>, period: Duration) -> Result<Self, StartError> {
        // A process starts few buses, and the exchange must not borrow from this one.
        let storage: &'static PduStorage<FRAMES, FRAME_DATA_BYTES> = Box::leak(Box::new(PduStorage::new()));
        let (tx, rx, pdu_loop) = storage.try_split().expect("the storage is new");
        // Longer than this thread may wait for a CPU.
        let (pdu, eeprom) = (Duration::from_millis(100), Duration::from_secs(2));
        let timeouts = Timeouts { pdu, eeprom, ..Timeouts::default() };
        let retry_behaviour = RetryBehaviour::Count(3);
        let config = MainDeviceConfig { retry_behaviour, ..MainDeviceConfig::default() };
        let main = MainDevice::new(pdu_loop, timeouts, config);
        let main: &'static MainDevice<'static> = Box::leak(Box::new(main));
        let mut ends = Ends { link, tx, rx, buffer: Box::new([0; MAX_FRAME_BYTES]) };
        let group: &'static Group = Box::leak(Box::new(ends.run(operate(main, period), START_TIMEOUT)?));
        let create = || group.tx_rx_dc(main);
        let exchange = Box::new(Slot { create, future: Box::pin(None) });
        let expected = COUNTER_PER_SUBDEVICE * group.len() as u16;
        Ok(Self {
            ends,
            main,
            group,
            exchange,
            phase: Phase::Idle,
            sent_at: Instant::from_ticks(0),
            expected,
            unexpected: 0,
        })
    }

    /// Number of SubDevices.
    #[must_use]
    pub fn subdevices(&self) -> usize {
        self.group.len()
    }

    /// Frames that belong to no exchange.
    #[must_use]
    pub fn unexpected(&self) -> u64 {
        self.unexpected
    }

    /// Starts an exchange with `outputs` of each SubDevice.
    ///
    /// Real-time safety: at most one system call, which does not wait.
    pub fn send(&mut self, mut outputs: impl FnMut(usize, &mut [u8])) {
        // The exchange locks the process data.
        self.exchange.abandon();
        for (index, subdevice) in self.group.iter(self.main).enumerate() {
            outputs(index, &mut subdevice.outputs_raw_mut());
        }
        if self.phase == Phase::Idle {
            self.phase = Phase::Starting(0);
        }
        self.exchange.start();
        self.sent_at = punctual::now();
        // The first poll creates the frame. One that the interface does not take now is not sent
        // later.
        if self.exchange.poll().is_ready() || !self.ends.send() {
            self.exchange.abandon();
        }
    }

    /// Ends the exchange, passes the inputs of each SubDevice to `inputs`, and returns the
    /// frame's passage of the reference clock; `None` until all SubDevices have reached OP.
    ///
    /// Real-time safety: a few system calls, which do not wait.
    ///
    /// # Errors
    /// See [`Fault`].
    pub fn receive(&mut self, mut inputs: impl FnMut(usize, &[u8])) -> Result<Option<Passage>, Fault> {
        // An interface that is down has no frames.
        self.unexpected += self.ends.receive().unwrap_or(0);
        if self.phase == Phase::Idle {
            return Ok(None);
        }
        let Poll::Ready(response) = self.exchange.poll() else {
            self.exchange.abandon();
            return Err(Fault::Lost);
        };
        let response = response.map_err(Fault::Protocol)?;
        let other = response.subdevice_states.iter().find(|&&state| state != SubDeviceState::Op);
        match (self.phase, other) {
            (Phase::Starting(count), Some(_)) if count < START_EXCHANGES => {
                self.phase = Phase::Starting(count + 1);
                return Ok(None);
            }
            // A SubDevice that has not processed the frame has no state, either.
            _ if response.working_counter != self.expected => {
                return Err(Fault::WorkingCounter(response.working_counter));
            }
            (_, Some(&state)) => return Err(Fault::NotOperational(state)),
            (_, None) => self.phase = Phase::Operational,
        }
        for (index, subdevice) in self.group.iter(self.main).enumerate() {
            inputs(index, &subdevice.inputs_raw());
        }
        let CycleInfo { dc_system_time: system_time_ns, cycle_start_offset, .. } = response.extra;
        let phase_ns = cycle_start_offset.as_nanos() as u64;
        Ok(Some(Passage { sent_at: self.sent_at, system_time_ns, phase_ns }))
    }

    /// Sets all outputs to zero, and requests Init of all SubDevices. Waits at most
    /// [`STOP_TIMEOUT`] for them; if they do not answer, their watchdogs expire.
    pub fn stop(&mut self) {
        self.send(|_, outputs| outputs.fill(0));
        let main = self.main;
        let request = Command::bwr(RegisterAddress::AlControl.into()).ignore_wkc();
        let stop = async move { Ok(request.send(main, INIT_AND_ACKNOWLEDGE).await?) };
        let _ = self.ends.run(stop, STOP_TIMEOUT);
    }
}

/// Finds the SubDevices, aligns their clocks, brings them to SafeOp and requests OP.
async fn operate(main: &'static MainDevice<'static>, period: Duration) -> Result<Group, StartError> {
    let start = StdInstant::now();
    let now = move || start.elapsed().as_nanos().try_into().unwrap_or(u64::MAX);
    let probe = Command::brd(RegisterAddress::Type.into()).ignore_wkc().receive::<u8>(main);
    if probe.await.unwrap_or(0) == 0 {
        return Err(StartError::NoSubDevice);
    }
    let mut group = main.init_single_group::<MAX_SUBDEVICES, MAX_PROCESS_DATA>(now).await?;
    for mut subdevice in group.iter_mut(main) {
        subdevice.set_dc_sync(DcSync::Sync0);
    }
    for (index, subdevice) in group.iter(main).enumerate().skip(1) {
        let difference: u32 = subdevice.register_read(RegisterAddress::DcSystemTimeDifference).await?;
        // A sign and a magnitude.
        let nanoseconds = difference & 0x7fff_ffff;
        if u128::from(nanoseconds) > MAX_CLOCK_DIFFERENCE.as_nanos() {
            return Err(StartError::Clock { index, nanoseconds });
        }
    }
    let configuration =
        DcConfiguration { start_delay: SYNC0_DELAY, sync0_period: period, sync0_shift: period / 2 };
    let group = group.into_pre_op_pdi(main).await?;
    for (index, subdevice) in group.iter(main).enumerate() {
        let data = subdevice.io_raw();
        if data.inputs().is_empty() || data.outputs().is_empty() {
            return Err(StartError::ProcessData(index));
        }
    }
    let group = group.configure_dc_sync(main, configuration).await?;
    let group = group.into_safe_op(main).await?;
    // A SubDevice with SYNC0 reaches OP only while it receives process data.
    Ok(group.request_into_op(main).await?)
}

/// The clock of `ethercrab`'s time limits, which stands still during the exchange of process data.
///
/// While the bus starts, [`advance`] sets the clock before each poll, and the limits of `ethercrab`
/// apply. In the task, the next release is the limit: no timer expires, and no thread waits for
/// one.
struct Clock {
    micros: AtomicU64,
}

impl embassy_time_driver::Driver for Clock {
    fn now(&self) -> u64 {
        self.micros.load(Relaxed)
    }

    /// Does nothing: futures are polled after each frame and each millisecond.
    fn schedule_wake(&self, _: u64, _: &Waker) {}
}

embassy_time_driver::time_driver_impl!(static CLOCK: Clock = Clock { micros: AtomicU64::new(0) });

/// Sets the clock to the present time.
fn advance() {
    static START: LazyLock<StdInstant> = LazyLock::new(StdInstant::now);
    let micros = START.elapsed().as_micros().try_into().unwrap_or(u64::MAX);
    CLOCK.micros.fetch_max(micros, Relaxed);
}
