//! Sends back received lines, using interrupts, until it receives the line `bye`. Skips empty
//! lines, because the first byte may have arrived before the UART was enabled.
//!
//! needs: raspberry-pi: it uses the UART's driver and pins
//! sample: one board per instruction set
#![no_std]
#![no_main]

extern crate punctual_bare;

#[punctual::app(report = "never")]
mod app {
    use embedded_io::{Read, ReadReady, Write};
    use programs::pins::uart_clock;
    use rpi_hal::gpio;
    use rpi_hal::uart::{Handler, Reader, Rings, Uart, Writer};
    use rpi_registers::Peripherals;

    #[shared]
    struct Shared {}

    #[local]
    struct Local {
        handler: Handler,
        reader: Reader,
        writer: Writer,
        line: (usize, [u8; 3]),
    }

    #[init(local = [rings: Rings<256, 64> = Rings::new()])]
    fn init(cx: init::Context) -> (Shared, Local) {
        let peripherals = Peripherals::take().expect("this is the first call");
        let (mut bank, pins) = gpio::split(peripherals.gpio);
        let pins = (pins.gpio14.into_alternate(&mut bank), pins.gpio15.into_alternate(&mut bank));
        let uart = Uart::new(peripherals.uart0, pins, uart_clock(), 115_200);
        let (handler, reader, writer) = uart.with_rings(cx.local.rings);
        // Handles the bytes that had arrived before.
        echo::spawn(handler.lost()).expect("it is the first");
        (Shared {}, Local { handler, reader, writer, line: (0, [0; 3]) })
    }

    #[task(priority = 2, binds = UART0, local = [handler])]
    fn uart(cx: uart::Context) {
        cx.local.handler.handle();
        // Rejected if the last job has not started yet, which then also reads these bytes.
        let _ = echo::spawn(cx.local.handler.lost());
    }

    #[task(priority = 1, local = [reader, writer, line])]
    fn echo(cx: echo::Context, lost: u32) {
        let Ok(true) = cx.local.reader.read_ready() else { return };
        let mut bytes = [0; 32];
        let Ok(count) = cx.local.reader.read(&mut bytes);
        let (length, line) = cx.local.line;
        for &byte in &bytes[..count] {
            if byte == b'\n' && *length > 0 {
                let Ok(()) = cx.local.writer.write_all(b"\r\n");
                if *length == 3 && line == b"bye" {
                    writeln!(cx.local.writer, "lost: {lost}\r").expect("a number can be formatted");
                    let Ok(()) = cx.local.writer.flush();
                    return punctual::shutdown();
                }
                *length = 0;
                continue;
            }
            if byte == b'\n' {
                continue;
            }
            if let Some(place) = line.get_mut(*length) {
                *place = byte;
            }
            *length += 1;
            let Ok(()) = cx.local.writer.write_all(&[byte]);
        }
        // The buffer may not have held all bytes.
        let _ = echo::spawn(lost);
    }
}
