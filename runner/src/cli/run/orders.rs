//! Orders of the user to the process that carries out a round: signals, and the answer at the terminal.

use super::super::watch::Pause;
use crate::conduct::Order;
use std::io::{self, BufRead as _, Write as _};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

/// Turns signals into orders. On a terminal Ctrl-C asks for the order; every other signal detaches.
pub(super) async fn send_orders(orders: mpsc::UnboundedSender<Order>, pause: Option<Pause>) {
    let (Ok(mut interrupt), Ok(mut terminate)) =
        (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
    else {
        return;
    };
    loop {
        let interrupted = tokio::select! {
            _ = interrupt.recv() => true,
            _ = terminate.recv() => false,
        };
        let Some(pause) = pause.as_ref().filter(|_| interrupted) else {
            let _ = orders.send(Order::Detach);
            return;
        };
        pause.begin().await;
        let asked = tokio::task::spawn_blocking(ask);
        let order = tokio::select! {
            answer = asked => answer.ok().flatten(),
            // A second Ctrl-C detaches without an answer.
            _ = interrupt.recv() => {
                let _ = writeln!(io::stderr());
                Some(Order::Detach)
            }
        };
        pause.end();
        if let Some(order) = order {
            let _ = orders.send(order);
            if order == Order::Detach {
                return;
            }
        }
    }
}

fn ask() -> Option<Order> {
    let _ = write!(
        io::stderr(),
        "\n  d  Detach: leave now. Jobs keep running; the next `trainplan run` continues the campaign\n  \
         q  Quit: submit nothing more, and leave when the submitted runs are over\n  \
         c  Cancel: cancel every job, and wait until Slurm confirms it\n  \
         Enter without a letter continues. Ctrl-C again detaches.\n  [d/q/c] "
    );
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer).ok()?;
    match answer.trim() {
        "d" => Some(Order::Detach),
        "q" => Some(Order::Quit),
        "c" => Some(Order::Cancel),
        _ => None,
    }
}
