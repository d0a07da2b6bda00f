/** The dialects that are served, newest first. 2.0.2 is refused, as by Azure Files: it has neither large transfers nor leases. */
export const DIALECT = { smb210: 0x0210, smb300: 0x0300, smb302: 0x0302, smb311: 0x0311 } as const;
export type Dialect = (typeof DIALECT)[keyof typeof DIALECT];

/** Answers a multi-protocol NEGOTIATE of SMB1 that offers "SMB 2.???": the client sends an SMB2 NEGOTIATE next. */
export const DIALECT_WILDCARD = 0x02ff;

const newestFirst: readonly Dialect[] = [DIALECT.smb311, DIALECT.smb302, DIALECT.smb300, DIALECT.smb210];

export function chooseDialect(offered: readonly number[]): Dialect | undefined {
  return newestFirst.find((dialect) => offered.includes(dialect));
}

export function formatDialect(dialect: Dialect): string {
  return { [DIALECT.smb210]: '2.1', [DIALECT.smb300]: '3.0', [DIALECT.smb302]: '3.0.2', [DIALECT.smb311]: '3.1.1' }[
    dialect
  ];
}
