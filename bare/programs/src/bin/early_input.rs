//! Echoes a line whose beginning had already filled the UART's FIFO before the driver started, as a
//! boot loader could leave it.
//!
//! needs: raspberry-pi: it uses the UART's driver and pins
//! sample: one board per instruction set
#![no_std]
#![no_main]

#[macro_use]
extern crate punctual_bare;

#[punctual::app(report = "never")]
mod app {
    use embedded_io::{Read, ReadReady};
    use programs::pins::uart_clock;
    use rpi_hal::gpio;
    use rpi_hal::uart::{Handler, Reader, Rings, Uart};
    use rpi_registers::Peripherals;
    use rpi_registers::interfaces::Readable;
    use rpi_registers::uart::FR;

    #[shared]
    struct Shared {}

    #[local]
    struct Local {
        handler: Handler,
        reader: Reader,
    }

    #[init(local = [rings: Rings<256, 64> = Rings::new()])]
    fn init(cx: init::Context) -> (Shared, Local) {
        let peripherals = Peripherals::take().expect("this is the first call");
        // The console has enabled the FIFO.
        while !peripherals.uart0.fr.is_set(FR::RXFF) {}
        let (mut bank, pins) = gpio::split(peripherals.gpio);
        let pins = (pins.gpio14.into_alternate(&mut bank), pins.gpio15.into_alternate(&mut bank));
        let uart = Uart::new(peripherals.uart0, pins, uart_clock(), 115_200);
        let (handler, reader, _) = uart.with_rings(cx.local.rings);
        read::spawn().expect("it is the first");
        (Shared {}, Local { handler, reader })
    }

    #[task(priority = 2, binds = UART0, local = [handler])]
    fn uart(cx: uart::Context) {
        cx.local.handler.handle();
        let _ = read::spawn();
    }

    /// Counts the received dashes and prints their number at the full stop.
    #[task(priority = 1, local = [reader, count: usize = 0])]
    fn read(cx: read::Context) {
        while let Ok(true) = cx.local.reader.read_ready() {
            let mut byte = [0];
            let Ok(_) = cx.local.reader.read(&mut byte);
            if byte == [b'.'] {
                println!("dashes: {}", *cx.local.count);
                return punctual::shutdown();
            }
            *cx.local.count += usize::from(byte == [b'-']);
        }
    }
}
