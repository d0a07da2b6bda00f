/** Counts the commands that were answered, by their status, and their latency. */
import { Histogram, SECONDS_BOUNDS } from '../base/histogram.ts';

/** There are as many entries as there are commands: no label holds anything that a client sent. */
interface CommandFigures {
  readonly byStatus: Map<number, number>;
  readonly seconds: Histogram;
}

export class CommandMetrics {
  readonly #commands = new Map<string, CommandFigures>();

  observe(command: string, status: number, milliseconds: number): void {
    let figures = this.#commands.get(command);
    if (!figures) {
      figures = { byStatus: new Map(), seconds: new Histogram(SECONDS_BOUNDS) };
      this.#commands.set(command, figures);
    }
    figures.byStatus.set(status, (figures.byStatus.get(status) ?? 0) + 1);
    figures.seconds.observe(milliseconds / 1_000);
  }

  list(): readonly (readonly [command: string, figures: CommandFigures])[] {
    return [...this.#commands];
  }
}
